"""Model providers behind the `Model` port."""

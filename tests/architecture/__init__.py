"""What the house promises about itself: purity, sizes, names. Import directions are in pyproject.toml."""

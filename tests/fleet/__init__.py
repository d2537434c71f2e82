"""Real processes of Watchkeeper on a real Postgres and Valkey, under load, while something fails."""

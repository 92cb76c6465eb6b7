"""A bench: what is checked before it runs, how it runs, and the folder that keeps it."""

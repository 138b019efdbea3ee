"""The words that every room shares: specs, results, architectures, recipes, resources. Pydantic and numpy only."""

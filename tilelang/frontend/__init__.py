"""From a Python function to tile IR: source rewriting, tracing, capture of names."""

"""Trees and models to and from files and other libraries."""

"""Sources of data: simulated, corpora, files, and real data with known groups."""

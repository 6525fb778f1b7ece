"""Records in files: CSV and Parquet."""

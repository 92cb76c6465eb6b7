//! Metrics, time grids and Parquet: what every world writes its results through.

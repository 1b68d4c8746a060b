"""Several aggregation trees for each task: fractional tree packing, exact or rounded to a few trees."""

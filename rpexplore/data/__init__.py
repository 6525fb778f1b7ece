"""From records to exact counts. Planning never reaches this package."""

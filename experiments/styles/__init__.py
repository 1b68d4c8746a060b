"""Names, colours and markers that plots and pages share."""

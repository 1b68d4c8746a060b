"""INARouting (2025): routes of several jobs together, under fair shares of links and of what switches process."""

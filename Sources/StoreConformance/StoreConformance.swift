// Made in the order of the map in CONTRIBUTING.md.

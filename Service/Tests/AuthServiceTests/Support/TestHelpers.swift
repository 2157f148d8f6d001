// Imports `TestHelpers` into every file of this target.
@_exported import TestHelpers

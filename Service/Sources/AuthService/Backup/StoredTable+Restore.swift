extension StoredTable {
    /// The cells of a row for a restore. A restore disables each webhook: its receiver has received events since the backup, and
    /// the database may be restored only for a test, next to the running service.
    package func restored(_ cells: [Cell]) -> [Cell] {
        guard self == .webhooks, let place = columns.firstIndex(where: { $0.name == "is_enabled" }),
            cells.indices.contains(place)
        else { return cells }
        var cells = cells
        cells[place] = .integer(0)
        return cells
    }
}

extension StoredTable {
    /// The cells of a row for a restore. A restore disables each webhook: its receiver has events that the restored database
    /// lacks, and a test restore next to the running service must not send events to it.
    package func restored(_ cells: [Cell]) -> [Cell] {
        guard self == .webhooks, let place = columns.firstIndex(where: { $0.name == "is_enabled" }),
            cells.indices.contains(place)
        else { return cells }
        var cells = cells
        cells[place] = .integer(0)
        return cells
    }
}

extension StoredTable {
    /// The cells of a row as a restore writes them: each webhook is switched off. Its receiver has had events since the backup, and
    /// a restored database may be a drill beside the running service.
    package func restored(_ cells: [Cell]) -> [Cell] {
        guard self == .webhooks, let place = columns.firstIndex(where: { $0.name == "is_enabled" }),
            cells.indices.contains(place)
        else { return cells }
        var cells = cells
        cells[place] = .integer(0)
        return cells
    }
}

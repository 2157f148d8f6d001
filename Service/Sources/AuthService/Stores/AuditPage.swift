package import AuthContract

/// Events of the audit log that fit into one answer. The largest events are about 256 KiB, because they contain the
/// record of an app before and after a change.
package struct AuditPage: Sendable {
    /// The events, in the order of the query.
    package private(set) var events: [RecordedAuditEvent] = []
    /// Whether this is known to be the last page. If false, the next page may still be empty.
    package private(set) var isLast = false

    /// The number of events of one read.
    private static let step = 50
    /// The details' size at which a page ends, in bytes.
    private static let maximumBytes = 4 << 20

    /// Reads until there are `limit` events, or enough bytes.
    ///
    /// - Parameter next: reads up to the given number of events of the query, after the event with the given sequence
    ///   number. Without a sequence number, it reads from the start of the query.
    fileprivate static func read(
        _ limit: Int, _ next: (Int64?, Int) async throws(StoreError) -> [RecordedAuditEvent]
    ) async throws(StoreError) -> AuditPage {
        var (page, bytes) = (AuditPage(), 0)
        while page.events.count < limit {
            let count = min(step, limit - page.events.count)
            let read = try await next(page.events.last?.sequence, count)
            for recorded in read {
                guard bytes < maximumBytes else { return page }
                bytes += recorded.event.detailText.utf8.count
                page.events.append(recorded)
            }
            page.isLast = read.count < count
            if page.isLast { break }
        }
        return page
    }
}

extension AuditLog {
    /// A page of the events of `events(app:device:codes:after:before:limit:)`.
    package func page(
        app: AppID?, device: DeviceID?, codes: Set<AuditEvent.Code>?, after: Int64, before: Int64?, limit: Int
    ) async throws(StoreError) -> AuditPage {
        try await AuditPage.read(limit) { (last, count) async throws(StoreError) in
            try await events(
                app: app, device: device, codes: codes, after: after, before: last ?? before, limit: count)
        }
    }

    /// A page of the events of `events(app:device:after:limit:)`.
    package func page(
        app: AppID?, device: DeviceID?, after: Int64, limit: Int
    ) async throws(StoreError) -> AuditPage {
        try await AuditPage.read(limit) { (last, count) async throws(StoreError) in
            try await events(app: app, device: device, after: last ?? after, limit: count)
        }
    }
}

internal import AuthContract
internal import AuthService

extension StoreConformance {
    static var auditArchiveChecks: [ConformanceCheck] {
        [
            ConformanceCheck("Archived events are removed from the log, and the chain continues after them") { stores in
                guard let store = stores.auditArchives else { return }
                let samples = try Samples(stores)
                for _ in 0..<4 { try await stores.audit.append(samples.event(.securityEvent)) }
                // A store always keeps the last event of the log, even if an archive already has that event. The events appended
                // above now follow it, so the store can remove it.
                while try await store.removeArchivedEvents(limit: 1000) > 0 {}
                let before = try await store.auditArchives()
                let first = (before.last?.last ?? 0) + 1
                var entries: [StoredAuditEntry] = []
                while true {
                    let page = try await store.auditEntries(after: first - 1 + Int64(entries.count), limit: 1000)
                    if page.isEmpty { break }
                    entries += page
                }
                var hash = before.last?.hash ?? AuditChain.origin
                for (offset, stored) in entries.enumerated() {
                    try expect(stored.entry.sequence, is: first + Int64(offset), "the number of an entry")
                    hash = AuditChain.hash(stored.entry, after: hash)
                    try expect(stored.hash, is: hash, "the hash of \(stored.entry.sequence)")
                }
                let last = try unwrap(entries.dropLast().last, "event before the last")
                let archive = StoredAuditArchive(
                    first: first, last: last.entry.sequence, hash: last.hash, seal: "seal")
                let gap = StoredAuditArchive(
                    first: first + 1, last: last.entry.sequence, hash: last.hash, seal: "gap")
                try expect(try await !store.add(gap), "an archive after a gap was added")
                try expect(try await store.removeArchivedEvents(limit: 1000), is: 0, "what was removed before")
                let done = try await concurrently(16) { _ in try await store.add(archive) }
                try expect(done.count { $0 }, is: 1, "how many of 16 added one archive")
                try expect(try await store.auditArchives(), is: before + [archive], "the archives")
                var removed = 0
                while case let count = try await store.removeArchivedEvents(limit: 2), count > 0 {
                    try expect(count <= 2, "more than the limit was removed")
                    removed += count
                }
                try expect(removed, is: entries.count - 1, "the number of removed events")
                let rest = try await stores.audit.events(app: nil, device: nil, before: nil, limit: 1000)
                try expect(rest.map(\.sequence), is: [last.entry.sequence + 1], "the numbers of the rest")
                try await stores.audit.append(samples.event(.securityEvent))
                let end = try unwrap(try await stores.audit.link(at: nil), "end")
                try expect(end.sequence, is: last.entry.sequence + 2, "the number of the next event")
                try expect(try await stores.audit.firstBrokenLink(), is: nil, "the first broken link")
            },
            ConformanceCheck("The last event of the log is not removed, even if it is archived") { stores in
                guard let store = stores.auditArchives else { return }
                let samples = try Samples(stores)
                try await stores.audit.append(samples.event(.securityEvent))
                let end = try unwrap(try await stores.audit.link(at: nil), "end")
                let first = (try await store.auditArchives().last?.last ?? 0) + 1
                let archive = StoredAuditArchive(first: first, last: end.sequence, hash: end.hash, seal: "seal")
                try expect(try await store.add(archive), "not added")
                while try await store.removeArchivedEvents(limit: 1000) > 0 {}
                try expect(try await stores.audit.link(at: nil), is: end, "the end")
                try await stores.audit.append(samples.event(.securityEvent))
                try expect(
                    try await stores.audit.link(at: nil)?.sequence, is: end.sequence + 1, "the number of the next")
                try expect(try await stores.audit.firstBrokenLink(), is: nil, "the first broken link")
            },
        ]
    }
}

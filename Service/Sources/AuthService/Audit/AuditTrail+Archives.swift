internal import AuthContract
internal import Crypto
internal import StrictJSON

/// Verification of the archives, and of their connection to the log.
extension AuditTrail {
    /// Checks each archive: its position, its seal, its file, and those of its events that are still in the log.
    ///
    /// - Parameters:
    ///   - sequence: the event whose hash is looked for; nil: none.
    ///   - skipsMissing: whether an archive without its file is skipped. Otherwise a missing file is a fault.
    /// - Returns: the first fault, and the hash of the event if it is in an archive.
    func verifyArchives(
        lookingFor sequence: Int64?, skipsMissing: Bool
    ) async throws -> (finding: AuditCheckResult, found: [UInt8]?) {
        var link = AuditLink(sequence: 0, hash: AuditChain.origin)
        var found: [UInt8]?
        var former: [Curve25519.Signing.PublicKey]?
        for archive in try await archives?.auditArchives() ?? [] {
            guard archive.first == link.sequence + 1, try await isSealed(archive, &former) else {
                return (.archiveBroken(archive.first), nil)
            }
            let file: (entries: [StoredAuditEntry], seal: String)
            do throws(AuditArchiveFolder.ReadFailure) {
                guard let folder else { throw .missing }
                file = try await folder.read(first: archive.first, last: archive.last)
            } catch {
                switch error {
                case .missing where skipsMissing:
                    link = AuditLink(sequence: archive.last, hash: archive.hash)
                    continue
                case .missing: return (.archiveMissing(archive.first), nil)
                case .malformed: return (.archiveBroken(archive.first), nil)
                }
            }
            for stored in file.entries {
                guard let next = link.next(stored) else { return (.brokenLink(link.sequence + 1), nil) }
                link = next
                if link.sequence == sequence { found = link.hash }
            }
            // The seal covers the last hash, and the last hash covers every event before it.
            guard link == AuditLink(sequence: archive.last, hash: archive.hash), file.seal == archive.seal else {
                return (.archiveBroken(archive.first), nil)
            }
            if let changed = try await firstRemainingEvent(of: archive, unlike: file.entries) {
                return (.brokenLink(changed), nil)
            }
        }
        return (.intact, found)
    }

    /// The number of the first archived event whose copy in the log differs from the archive's file or cannot be read;
    /// nil: there is no such event.
    private func firstRemainingEvent(
        of archive: StoredAuditArchive, unlike entries: [StoredAuditEntry]
    ) async throws -> Int64? {
        var after = archive.first - 1
        // Read one event first. Usually that suffices, because the log begins after the archive.
        var limit = 1
        while let archives {
            let page: [StoredAuditEntry]
            do throws(StoreError) {
                page = try await archives.auditEntries(after: after, limit: limit)
            } catch {
                guard error.code == .unreadable else { throw error }
                return after + 1
            }
            for stored in page {
                guard stored.entry.sequence <= archive.last else { return nil }
                guard entries[Int(stored.entry.sequence - archive.first)] == stored else {
                    return stored.entry.sequence
                }
                after = stored.entry.sequence
            }
            guard page.count == limit else { return nil }
            limit = 1000
        }
        return nil
    }

    /// Whether this service sealed the archive's end.
    ///
    /// - Parameter former: a cache of the former keys; nil: they were not read yet.
    func isSealed(
        _ archive: StoredAuditArchive, _ former: inout [Curve25519.Signing.PublicKey]?
    ) async throws -> Bool {
        guard let seal = try? AuditHead(archive.seal), seal.kind == .archive, seal.sequence == archive.last,
            seal.hash == archive.hash
        else { return false }
        return try await isGenuine(seal, &former)
    }

    /// The names of missing archive files.
    package func missingArchives() async throws -> [String] {
        var missing: [String] = []
        for archive in try await archives?.auditArchives() ?? [] {
            let isThere = await folder?.hasFile(first: archive.first, last: archive.last) ?? false
            if !isThere { missing.append(AuditArchiveFolder.name(first: archive.first, last: archive.last)) }
        }
        return missing
    }

    /// Calls `body` with the details of archived service key rotations, newest first. The caller checks their signatures.
    func eachArchivedRotation(_ body: (JSONObject) -> Void) async throws {
        guard let folder, let archives else { return }
        for archive in try await archives.auditArchives().reversed() {
            // The check of the archives reports a missing file.
            guard let entries = try? await folder.read(first: archive.first, last: archive.last).entries else {
                continue
            }
            for stored in entries.reversed() where stored.entry.code == AuditEvent.Code.serviceKeyRotated.rawValue {
                if let detail = (try? JSONValue(parsing: stored.entry.detail, limits: .stored))?.object { body(detail) }
            }
        }
    }
}

extension AuditLink {
    /// The link of the next event; nil if it does not continue the chain.
    func next(_ stored: StoredAuditEntry) -> AuditLink? {
        guard stored.entry.sequence == sequence + 1, AuditChain.hash(stored.entry, after: hash) == stored.hash else {
            return nil
        }
        return AuditLink(sequence: stored.entry.sequence, hash: stored.hash)
    }
}

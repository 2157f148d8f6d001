internal import AuthContract
internal import AuthService

extension StoreConformance {
    static var serviceKeyChecks: [ConformanceCheck] {
        [
            ConformanceCheck("Check values are replaced only if the caller read the stored ones") { stores in
                let samples = try Samples(stores)
                let (one, two) = (try samples.keyCheck(), try samples.keyCheck())
                let known = try await stores.serviceKeys.keyChecks()
                let event = samples.event(.serviceKeyRotated)
                func replace(_ current: [ServiceKeyCheck], _ new: [ServiceKeyCheck]) async throws -> Bool {
                    try await stores.serviceKeys.replaceKeyChecks(current, with: new, recording: event)
                }
                try expect(try await !replace([one], [two]), "replaced from what was not there")
                try expect(try await replace(known, [one, two]), "not replaced")
                try expect(try await stores.serviceKeys.keyChecks(), is: [one, two], "the check values")
                try expect(try await !replace([two, one], [one]), "replaced from another order")
                try expect(try await !replace([one], [one]), "replaced from a part")
                try expect(try await !replace([], [one]), "replaced from nothing")
                try expect(try await replace([one, two], [one]), "not replaced")
                try expect(try await stores.serviceKeys.keyChecks(), is: [one], "the check value")
                try expect(try await stores.codes(samples).count, is: 2, "the number of events")
            },
            ConformanceCheck("Of 64 concurrent replacements of the check values, exactly one succeeds") { stores in
                let samples = try Samples(stores)
                let known = try await stores.serviceKeys.keyChecks()
                let checks = try (0..<64).map { _ in try samples.keyCheck() }
                let done = try await concurrently(64) { number in
                    try await stores.serviceKeys.replaceKeyChecks(known, with: [checks[number]], recording: nil)
                }
                try expect(done.count { $0 }, is: 1, "how many did")
                let winner = try unwrap(done.firstIndex(of: true), "winner")
                try expect(try await stores.serviceKeys.keyChecks(), is: [checks[winner]], "the check value")
            },
            ConformanceCheck("Every sealed value is listed, in pages, and replaced only while it is unchanged") {
                stores in
                let samples = try Samples(stores)
                let app = StoredApp(appID: samples.app, sealedJSON: #"{"sealed":"one"}"#)
                _ = try await stores.apps.insert(app, recording: samples.event(.appAdded))
                let proofs = (0..<5).map { _ in
                    PendingProof(
                        appID: samples.app, deviceID: samples.deviceID(), arrivedAt: stores.now,
                        sealedRequest: samples.bytes(40))
                }
                for proof in proofs { try await stores.pendingProofs.keep(proof) }
                var listed: [SealedRow] = []
                while true {
                    let page = try await stores.serviceKeys.sealedRows(
                        .pendingProof, after: listed.last?.id ?? "", limit: 2)
                    try expect(page.count <= 2, "a page is too long")
                    if page.isEmpty { break }
                    listed += page
                }
                let rows = listed.filter { row in proofs.contains { $0.deviceID.text == row.id } }
                try expect(rows.count, is: 5, "the number of proofs listed")
                for proof in proofs {
                    try expect(
                        rows.contains { $0.id == proof.deviceID.text && $0.value == proof.sealedRequest },
                        "a proof is not listed as it is")
                }
                let stale = SealedRow(kind: .pendingProof, id: rows[1].id, value: [0])
                let count = try await stores.serviceKeys.reseal([(rows[0], [1, 2, 3]), (stale, [4, 5, 6])])
                try expect(count, is: 1, "how many were replaced")
                let after = try await stores.serviceKeys.sealedRows(.pendingProof, after: "", limit: 1000)
                try expect(after.first { $0.id == rows[0].id }?.value, is: [1, 2, 3], "the replaced row")
                try expect(after.first { $0.id == rows[1].id }, is: rows[1], "the row that had changed")

                let record = try unwrap(
                    try await stores.serviceKeys.sealedRows(.app, after: "", limit: 1000).first {
                        $0.id == samples.app.text
                    }, "the record of the app")
                try expect(record.value, is: Array(app.sealedJSON.utf8), "the record")
                let text = #"{"sealed":"two"}"#
                _ = try await stores.serviceKeys.reseal([(record, Array(text.utf8))])
                try expect(try await stores.apps.app(samples.app)?.sealedJSON, is: text, "the replaced record")
            },
        ]
    }
}

extension Samples {
    fileprivate func keyCheck() throws -> ServiceKeyCheck {
        try unwrap(ServiceKey(bytes())?.checks.first, "a key of 32 bytes")
    }
}

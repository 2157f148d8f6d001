internal import AuthContract
internal import AuthService

extension StoreConformance {
    static var pendingProofChecks: [ConformanceCheck] {
        [
            ConformanceCheck("A proof is read unchanged until it is erased") { stores in
                let samples = try Samples(stores)
                let proofs = (0..<3).map { _ in samples.proof() }
                for proof in proofs { try await stores.pendingProofs.keep(proof) }
                try await stores.pendingProofs.erasePendingProof(of: proofs[1].deviceID)
                // Erasing a proof again, or for a device without a proof, does nothing.
                try await stores.pendingProofs.erasePendingProof(of: proofs[1].deviceID)
                try await stores.pendingProofs.erasePendingProof(of: samples.deviceID())
                let kept = try await stores.proofs(of: samples, pageOf: 100)
                try expect(Set(kept), is: [proofs[0], proofs[2]], "the proofs kept")
            },
            ConformanceCheck("Proofs are listed in the order of their device ids, in pages without gaps or repeats") {
                stores in
                let samples = try Samples(stores)
                let proofs = (0..<7).map { _ in samples.proof() }
                for proof in proofs { try await stores.pendingProofs.keep(proof) }
                let read = try await stores.proofs(of: samples, pageOf: 3)
                try expect(read, is: proofs.sorted { $0.deviceID.text < $1.deviceID.text }, "the proofs read")
            },
            ConformanceCheck("A device has one proof: the last one kept") { stores in
                let samples = try Samples(stores)
                let device = samples.deviceID()
                try await stores.pendingProofs.keep(samples.proof(of: device))
                let last = samples.proof(of: device)
                try await stores.pendingProofs.keep(last)
                try expect(try await stores.proofs(of: samples, pageOf: 100), is: [last], "the proofs kept")
            },
        ]
    }
}

extension Samples {
    func proof(of device: DeviceID? = nil) -> PendingProof {
        PendingProof(
            appID: app, deviceID: device ?? deviceID(), arrivedAt: now, sealedRequest: bytes(64 * 1024))
    }
}

extension StoresUnderTest {
    /// All proofs of the check's app. The stores may hold others.
    func proofs(of samples: Samples, pageOf limit: Int) async throws -> [PendingProof] {
        var (proofs, last) = ([PendingProof](), DeviceID?.none)
        while true {
            let page = try await pendingProofs.pendingProofs(after: last, limit: limit)
            try expect(page.count <= limit, "a page has more than its limit")
            guard let end = page.last else { return proofs }
            if let last { try expect(end.deviceID.text > last.text, "a page does not continue after the one before") }
            proofs += page.filter { $0.appID == samples.app }
            last = end.deviceID
        }
    }
}

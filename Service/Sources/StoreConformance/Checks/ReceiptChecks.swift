internal import AuthContract
internal import AuthService

extension StoreConformance {
    static var receiptChecks: [ConformanceCheck] { takingChecks + recordingChecks }

    private static var takingChecks: [ConformanceCheck] {
        [
            ConformanceCheck("Due receipts are taken longest due first, and once within a lease") {
                stores in
                let samples = try Samples(stores)
                let devices = [30, 10, 20].map { samples.dueDevice(at: stores.now - $0) }
                for device in devices { try await stores.add(device, samples) }
                try await stores.add(samples.dueDevice(at: stores.now + 1), samples)
                let taken = try await stores.takeDue(samples)
                let wanted = [devices[0], devices[2], devices[1]]
                try expect(taken.map(\.deviceID), is: wanted.map(\.deviceID), "the devices taken, in order")
                var evidence = try unwrap(wanted[0].appAttest, "evidence")
                evidence.refresh.dueAt = stores.lease
                try expect(taken[0].evidence, is: evidence, "the evidence taken")
                try expect(try await stores.takeDue(samples).count, is: 0, "the number taken again")
                let later = try await stores.takeDue(samples, at: stores.lease, lease: stores.lease + 900)
                try expect(later.count, is: 4, "the number taken after the lease")
            },
            ConformanceCheck("Only receipts of registered devices with a due time are due") {
                stores in
                let samples = try Samples(stores)
                for status in DeviceStatus.allCases where status != .registered {
                    try await stores.add(samples.dueDevice(at: stores.now - 1, status: status), samples)
                }
                try await stores.add(samples.device(evidence: samples.evidence()), samples)
                var bare = samples.evidence(refresh: ReceiptRefresh(dueAt: stores.now - 1))
                bare.receipt = nil
                try await stores.add(samples.device(evidence: bare), samples)
                try await stores.add(samples.device(platform: .android), samples)
                try expect(try await stores.takeDue(samples).count, is: 0, "the number taken")
            },
            ConformanceCheck("64 concurrent callers take each receipt once") { stores in
                let samples = try Samples(stores)
                for _ in 0..<16 { try await stores.add(samples.dueDevice(at: stores.now - 1), samples) }
                let taken = try await concurrently(64) { _ in
                    try await stores.receipts.takeDueReceipt(at: stores.now, lease: stores.lease)
                }
                let ids = taken.compactMap { $0 }.filter { $0.appID == samples.app }.map(\.deviceID)
                let rest = try await stores.takeDue(samples).map(\.deviceID)
                try expect(Set(ids + rest).count, is: 16, "how many devices were taken")
                try expect(ids.count + rest.count, is: 16, "how often they were taken")
            },
        ]
    }

    private static var recordingChecks: [ConformanceCheck] {
        [
            ConformanceCheck("A new receipt replaces the taken one and nothing else") { stores in
                let samples = try Samples(stores)
                let device = samples.dueDevice(at: stores.now - 1)
                try await stores.add(device, samples)
                let due = try unwrap(try await stores.takeDue(samples).first, "due receipt")
                let change = samples.replacement
                let event = samples.event(.securityEvent, device: device.deviceID)
                let counted = try await stores.devices.raise(
                    .counter(7, ofAppAttestKey: due.evidence.keyID), of: device.deviceID, app: device.appID)
                try expect(counted, "the counter cannot advance meanwhile")
                try expect(try await stores.receipts.record(change, of: due, recording: event), "it was not recorded")
                var wanted = device
                wanted.appAttest?.counter = 7
                wanted.appAttest?.receipt = change.replacement?.receipt
                wanted.appAttest?.riskMetric = change.replacement?.riskMetric
                wanted.appAttest?.refresh = change.refresh
                try expect(try await stores.stored(device), is: wanted, "the device")
                try expect(try await stores.eventCount(of: device), is: 2, "the number of events")
            },
            ConformanceCheck("A failed exchange keeps the receipt") { stores in
                let samples = try Samples(stores)
                let device = samples.dueDevice(at: stores.now - 1)
                try await stores.add(device, samples)
                let due = try unwrap(try await stores.takeDue(samples).first, "due receipt")
                let change = ReceiptChange(refresh: samples.replacement.refresh)
                try expect(try await stores.receipts.record(change, of: due, recording: nil), "it was not recorded")
                var wanted = device
                wanted.appAttest?.refresh = change.refresh
                try expect(try await stores.stored(device), is: wanted, "the device")
            },
            ConformanceCheck("An outcome is recorded once, and only under the current lease") { stores in
                let samples = try Samples(stores)
                let device = samples.dueDevice(at: stores.now - 1)
                try await stores.add(device, samples)
                let first = try unwrap(try await stores.takeDue(samples).first, "due receipt")
                let second = try unwrap(
                    try await stores.takeDue(samples, at: stores.lease, lease: stores.lease + 900).first, "second lease"
                )
                let event = samples.event(.securityEvent, device: device.deviceID)
                func record(_ due: DueReceipt) async throws -> Bool {
                    try await stores.receipts.record(samples.replacement, of: due, recording: event)
                }
                try expect(try await !record(first), "the first taker recorded")
                try expect(try await record(second), "the second taker could not record")
                try expect(try await !record(second), "it was recorded twice")
                try expect(try await stores.eventCount(of: device), is: 2, "the number of events")
            },
            ConformanceCheck("An outcome for replaced evidence is not recorded") { stores in
                try await stores.expectRefusal { samples, device, due in
                    let evidence = samples.evidence(refresh: due.evidence.refresh)
                    let change = samples.change(device) { $0.appAttest = evidence }
                    try expect(try await stores.devices.save(change), is: .saved, "replacing the evidence")
                }
            },
            ConformanceCheck("A newer receipt of the same attested key is not overwritten") { stores in
                try await stores.expectRefusal { samples, device, due in
                    // This change keeps the lease that was taken. Only the receipt and its risk metric change.
                    let change = ReceiptChange(
                        replacement: .init(receipt: samples.bytes(700), riskMetric: 1), refresh: due.evidence.refresh)
                    let event = samples.event(.securityEvent, device: device.deviceID)
                    try expect(try await stores.receipts.record(change, of: due, recording: event), "the newer receipt")
                }
            },
        ]
    }
}

extension Samples {
    fileprivate func dueDevice(at time: UnixTime, status: DeviceStatus = .registered) -> DeviceRecord {
        device(status: status, evidence: evidence(refresh: ReceiptRefresh(dueAt: time)))
    }

    fileprivate var replacement: ReceiptChange {
        ReceiptChange(
            replacement: .init(receipt: Array("a newer receipt".utf8), riskMetric: 11),
            refresh: ReceiptRefresh(dueAt: now + 90_000, askedAt: now, outcome: "refreshed", failures: 0))
    }
}

extension StoresUnderTest {
    fileprivate var lease: UnixTime { now + 900 }

    /// Takes a due receipt and runs `change`. Then expects that the store refuses to record any outcome for the taken
    /// receipt, with or without a new receipt.
    fileprivate func expectRefusal(
        after change: (Samples, DeviceRecord, DueReceipt) async throws -> Void
    ) async throws {
        let samples = try Samples(self)
        let device = samples.dueDevice(at: now - 1)
        try await add(device, samples)
        let due = try unwrap(try await takeDue(samples).first, "due receipt")
        try await change(samples, device, due)
        let evidence = try await stored(device).appAttest
        for change in [samples.replacement, ReceiptChange(refresh: samples.replacement.refresh)] {
            let event = samples.event(.securityEvent, device: device.deviceID)
            try expect(try await !receipts.record(change, of: due, recording: event), "it was recorded")
        }
        try expect(try await stored(device).appAttest, is: evidence, "the evidence")
        try expect(try await eventCount(of: device), is: 2, "the number of events")
    }

    /// Takes all due receipts, and returns those of the check's app. The stores may hold others.
    fileprivate func takeDue(
        _ samples: Samples, at time: UnixTime? = nil, lease: UnixTime? = nil
    ) async throws -> [DueReceipt] {
        var taken: [DueReceipt] = []
        while let due = try await receipts.takeDueReceipt(at: time ?? now, lease: lease ?? self.lease) {
            if due.appID == samples.app { taken.append(due) }
            try expect(taken.count <= 1000, "receipts are taken without end")
        }
        return taken
    }
}

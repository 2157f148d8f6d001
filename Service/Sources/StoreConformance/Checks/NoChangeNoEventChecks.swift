internal import AuthContract
internal import AuthService

extension StoreConformance {
    /// Checks that calls append nothing to the audit log if they change nothing.
    static var noChangeNoEventChecks: [ConformanceCheck] {
        [
            ConformanceCheck("A refused change of an app appends no audit event") { stores in
                let samples = try Samples(stores)
                let app = StoredApp(appID: samples.app, sealedJSON: "{}")
                let other = StoredApp(appID: samples.app, sealedJSON: "{ }")
                _ = try await stores.apps.insert(app, recording: samples.event(.appAdded))
                try await stores.add(samples.device(), samples)
                try await stores.expectNoEvent(
                    samples,
                    [
                        ("inserting an app twice", { try await $0.apps.insert(other, recording: $1) })
                    ]
                        + [
                            ("replacing a record that has changed", samples.change(other, to: "{}")),
                            (
                                "replacing a record that needs an app without devices",
                                samples.change(app, to: "{ }", needsNoDevices: true)
                            ),
                            ("removing an app with devices", samples.removal(of: app)),
                        ].map { what, change in (what, { stores, _ in try await stores.apps.save(change) == .saved }) })
            },
            ConformanceCheck("An insertion that is refused has no event") { stores in
                let samples = try Samples(stores)
                let device = samples.device(evidence: samples.evidence())
                try await stores.add(device, samples)
                let refused = [
                    ("inserting a bound key", samples.device(key: device.key)),
                    ("inserting an attested key of another device", samples.device(evidence: device.appAttest)),
                    ("inserting one pending device too many", samples.device(status: .pending)),
                ]
                try await stores.expectNoEvent(
                    samples,
                    refused.map { what, device in
                        (
                            what,
                            {
                                try await $0.devices.insert(
                                    device, under: Samples.record(of: device.appID), maximumPending: 0, recording: $1)
                                    == .inserted
                            }
                        )
                    })
            },
            ConformanceCheck("A change of a device that is refused has no event") { stores in
                let samples = try Samples(stores)
                let (device, other) = (samples.device(), samples.device(evidence: samples.evidence()))
                for device in [device, other] { try await stores.add(device, samples) }
                var outdated = device
                outdated.version += 1
                let refused = [
                    ("saving over another version", samples.change(outdated) { $0.status = .revoked }),
                    ("saving an unknown device", samples.change(samples.device()) { $0.status = .revoked }),
                    ("rotating to a bound key", samples.rotation(of: device, to: other.key)),
                    (
                        "taking another device's App Attest key",
                        samples.change(device) { $0.appAttest = other.appAttest }
                    ),
                ]
                try await stores.expectNoEvent(
                    samples,
                    refused.map { what, change in
                        (
                            what,
                            { stores, event in
                                try await stores.devices.save(
                                    DeviceChange(from: change.before, to: change.after, event: event)) == .saved
                            }
                        )
                    })
            },
        ]
    }
}

extension StoresUnderTest {
    fileprivate typealias Change = (StoresUnderTest, AuditEvent) async throws -> Bool

    /// Makes changes that must all be refused, and expects an unchanged log.
    fileprivate func expectNoEvent(_ samples: Samples, _ changes: [(what: String, change: Change)]) async throws {
        let before = try await codes(samples)
        for (what, change) in changes {
            try expect(try await !change(self, samples.event(.securityEvent)), "\(what) succeeded")
            try expect(try await codes(samples), is: before, "the log after \(what)")
        }
    }
}

internal import AuthContract
internal import AuthService

extension StoreConformance {
    /// Calls that change nothing append nothing to the audit log.
    static var noChangeNoEventChecks: [ConformanceCheck] {
        [
            ConformanceCheck("A change of an app that is refused has no event") { stores in
                let samples = try Samples(stores)
                let app = StoredApp(appID: samples.app, sealedJSON: "{}")
                let other = StoredApp(appID: samples.app, sealedJSON: "{ }")
                _ = try await stores.apps.insert(app, recording: samples.event(.appAdded))
                try await stores.add(samples.device(), samples)
                try await stores.expectNoEvent(
                    samples,
                    [
                        ("inserting an app twice", { try await $0.apps.insert(other, recording: $1) }),
                        (
                            "replacing a record that has changed",
                            { try await $0.apps.replace(other, with: app, recording: $1) }
                        ),
                        ("removing an app with devices", { try await $0.apps.remove(samples.app, recording: $1) }),
                    ])
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
                        (what, { try await $0.devices.insert(device, maximumPending: 0, recording: $1) == .inserted })
                    })
            },
            ConformanceCheck("A rotation that is refused has no event") { stores in
                let samples = try Samples(stores)
                let (device, other) = (samples.device(), samples.device(evidence: samples.evidence()))
                for device in [device, other] { try await stores.add(device, samples) }
                let refused = [
                    ("rotating from another key", samples.rotation(of: device, from: samples.key())),
                    ("rotating to a bound key", samples.rotation(of: device, to: other.key)),
                    (
                        "rotating with another device's evidence",
                        samples.rotation(of: device, evidence: other.appAttest)
                    ),
                ]
                try await stores.expectNoEvent(
                    samples,
                    refused.map { what, change in
                        (what, { try await $0.devices.rotate(change, recording: $1) == .rotated })
                    })
            },
            ConformanceCheck("A change of a device that is refused has no event") { stores in
                let samples = try Samples(stores)
                let device = samples.device(evidence: samples.evidence())
                try await stores.add(device, samples)
                let (id, unknown, app) = (device.deviceID, samples.deviceID(), samples.app)
                var outdated = device
                outdated.key = samples.key()
                let known = outdated
                try await stores.expectNoEvent(
                    samples,
                    [
                        (
                            "a status that is not expected",
                            {
                                try await $0.devices.setStatus(
                                    id, of: app, from: [.pending], to: .revoked, recording: $1)
                            }
                        ),
                        (
                            "the status of an unknown device",
                            {
                                try await $0.devices.setStatus(
                                    unknown, of: app, from: [.registered], to: .revoked, recording: $1)
                            }
                        ),
                        (
                            "admitting a device that is not pending",
                            {
                                try await $0.devices.admit(
                                    id, of: app, known: device.assurance, as: .unproven, recording: $1)
                            }
                        ),
                        (
                            "evidence for a key that has changed",
                            {
                                try await $0.devices.replaceEvidence(
                                    of: known, with: nil, assurance: .unproven, recording: $1)
                            }
                        ),
                        (
                            "the scheme of an unknown device",
                            {
                                try await $0.devices.lowerScheme(unknown, of: app, to: .one, recording: $1)
                            }
                        ),
                        (
                            "the demand to rotate of an unknown device",
                            {
                                try await $0.devices.setMustRotate(unknown, of: app, to: nil, recording: $1)
                            }
                        ),
                        (
                            "an overlap that is not there",
                            {
                                try await $0.devices.endOverlap(id, of: app, key: device.key, recording: $1)
                            }
                        ),
                        (
                            "holding devices where none were admitted under observation",
                            {
                                try await $0.devices.holdObserved(of: app, limit: 10, recording: $1) > 0
                            }
                        ),
                    ])
            },
        ]
    }
}

extension StoresUnderTest {
    fileprivate typealias Change = (StoresUnderTest, AuditEvent) async throws -> Bool

    /// Makes changes that must all be refused, and expects that the log stays as it is.
    fileprivate func expectNoEvent(_ samples: Samples, _ changes: [(what: String, change: Change)]) async throws {
        let before = try await codes(samples)
        for (what, change) in changes {
            try expect(try await !change(self, samples.event(.securityEvent)), "\(what) succeeded")
            try expect(try await codes(samples), is: before, "the log after \(what)")
        }
    }
}

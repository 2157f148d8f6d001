import AuthContract
import StrictJSON
import Testing

@testable import AuthService

/// The decisions about app records, without a store.
struct AppCommandTests {
    private static let now = UnixTime(1_780_272_000)

    /// A demand to rotate keys, with its times in unix seconds.
    private struct Demand: Hashable {
        let keysBefore: Int64
        let rotateBy: Int64
    }

    private static func record(
        _ id: String, channel: AppRecord.BuildChannel, audiences: [String], demands: [Demand]
    ) throws -> AppRecord {
        var record = try World.record(["app_id": .string(id)])
        record.buildChannel = channel
        record.signature.tokenAudiences = audiences
        record.keys.compromises = demands.map {
            KeyPolicy.Compromise(keysBefore: UnixTime($0.keysBefore), rotateBy: UnixTime($0.rotateBy))
        }
        return record
    }

    @Test("random changes of a record are decided as a model decides them", arguments: 0..<40)
    func walk(seed: UInt64) throws {
        var random = SeededNumbers(seed: seed)
        let mask = SecretMask(try #require(ServiceKey(World.serviceKey)))
        let names = ["a", "b", "c"]
        var (channel, demands) = (AppRecord.BuildChannel.dev, [Demand]())
        var current = try Self.record("a", channel: channel, audiences: [], demands: [])
        var now = Self.now
        for _ in 0..<60 {
            now = now + Int64.random(in: 0...40, using: &random)
            let others = names.dropFirst().filter { _ in Bool.random(using: &random) }
            let audiences = ["b", "d"].filter { _ in Bool.random(using: &random) }
            let newChannel: AppRecord.BuildChannel = Bool.random(using: &random) ? .dev : .staging
            let newDemands = (0..<Int.random(in: 0...2, using: &random)).map { _ in
                Demand(
                    keysBefore: now.seconds + Int64.random(in: -60...60, using: &random),
                    rotateBy: now.seconds + Int64.random(in: 0...60, using: &random))
            }
            let kept = Bool.random(using: &random) ? demands + newDemands : newDemands
            let record = try Self.record("a", channel: newChannel, audiences: audiences, demands: kept)

            // The model: an audience must not be another app's id. Each demand is kept or made stricter, or all demands are
            // removed.
            let isFree = !audiences.contains { others.contains($0) }
            let isKept = demands.allSatisfy { old in
                kept.contains { new in
                    new.rotateBy <= old.rotateBy
                        && (old.keysBefore...max(old.keysBefore, now.seconds)).contains(new.keysBefore)
                }
            }
            let decided = try? record.replacing(
                current, beside: OtherApps(ids: others.map { try AppID($0) }), at: now, by: "test", masking: mask)
            #expect((decided != nil) == (isFree && (isKept || kept.isEmpty)))
            guard let decided else { continue }
            #expect(decided.needsNoDevices == (newChannel != channel))
            #expect(decided.event.code == .appChanged && decided.event.at == now && decided.event.appID == record.appID)
            #expect(decided.event.detail["before"] == .object(current.json(secrets: .masked(mask))))
            #expect(decided.event.detail["after"] == .object(record.json(secrets: .masked(mask))))
            (current, channel, demands) = (record, newChannel, kept)
        }
    }

    @Test("a new app's id must not be an audience of another app's tokens")
    func added() throws {
        let mask = SecretMask(try #require(ServiceKey(World.serviceKey)))
        let record = try Self.record("a", channel: .dev, audiences: [], demands: [])
        for (audiences, isAdded) in [(["a"], false), (["b"], true)] {
            let other = try Self.record("c", channel: .dev, audiences: audiences, demands: [])
            let others = OtherApps(ids: [other.appID], records: [other])
            let event = try? record.adding(beside: others, at: Self.now, by: "test", masking: mask)
            #expect((event?.code == .appAdded) == isAdded)
        }
    }

    @Test("the removal of an app changes each credential that names it, and no other")
    func removed() throws {
        let (app, other) = (try AppID("a"), try AppID("b"))
        let scopes: [CredentialScope] = [.apps([app]), .apps([app, other]), .apps([other]), .allApps]
        let credentials = scopes.enumerated().map { number, scope in
            Credential(
                id: "\(number)", name: "n", role: .viewer, scope: scope, secretHash: [], createdAt: Self.now,
                expiresAt: Self.now + 1)
        }
        let form = StoredApp.Form(masked: ["name": "n"], sealed: [1], widerUntil: nil)
        let stored = StoredApp(appID: app, sealedJSON: form.json.text())
        let change = stored.removing(losing: credentials, at: Self.now, by: "test")
        #expect(change.after == nil && change.needsNoDevices && change.event.code == .appRemoved)
        #expect(JSONValue.object(change.event.detail) == ["before": ["name": "n"]])
        #expect(change.credentials.map(\.before) == Array(credentials.prefix(2)))
        #expect(change.credentials.map(\.after?.revokedAt) == [Self.now, nil])
        #expect(change.isDecided(from: credentials) && !change.isDecided(from: Array(credentials.dropFirst())))
    }
}

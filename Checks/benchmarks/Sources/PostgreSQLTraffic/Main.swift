import AuthContract
import AuthService
import Crypto
import Foundation
@_spi(Benchmarks) import PostgreSQLStores
import StrictJSON

/// Calls of the stores in PostgreSQL, for `Checks/benchmarks/postgresql`.
@main
struct PostgreSQLTraffic {
    private static let usage = """
        usage: PostgreSQLTraffic rows devices|keys COUNT         prints rows for COPY
               PostgreSQLTraffic reads URL TASKS SECONDS         what `pgbench -S` reads, through the pool
               PostgreSQLTraffic registrations URL TASKS COUNT
               PostgreSQLTraffic claims URL TASKS SECONDS        both claims of a signed request
               PostgreSQLTraffic devices URL COUNT LOOKUPS       any of so many devices, one after another
        """

    static func main() async throws {
        let words = Array(CommandLine.arguments.dropFirst())
        switch (words.first, words.count) {
        case ("rows"?, 3): try Sample.printRows(of: words[1], count: Int(words[2]) ?? 0)
        case (let name?, 4):
            guard let first = Int(words[2]), let second = Int(words[3]) else { return print(usage) }
            var options = PostgreSQLStores.Options()
            options.deadline = .seconds(10)
            let stores = try await PostgreSQLStores.connect(words[1], options: options)
            switch name {
            case "reads": try await reads(stores, tasks: first, seconds: second)
            case "registrations": try await registrations(stores, tasks: first, count: second)
            case "claims": try await claims(stores, tasks: first, seconds: second)
            case "devices": try await devices(stores, count: first, lookUps: second)
            default: print(usage)
            }
            await stores.close()
        default: print(usage)
        }
    }

    /// The calls per second that this many concurrent tasks reach, until the given seconds have passed or the given
    /// number of calls was made.
    private static func rate(
        tasks: Int, seconds: Int = 600, count: Int = .max, _ call: @escaping @Sendable () async throws -> Void
    ) async throws -> Double {
        let began = ContinuousClock.now
        let end = began + .seconds(seconds)
        let share = count / tasks
        let calls = try await withThrowingTaskGroup(of: Int.self) { group in
            for _ in 0..<tasks {
                group.addTask {
                    var calls = 0
                    while calls < share, ContinuousClock.now < end {
                        try await call()
                        calls += 1
                    }
                    return calls
                }
            }
            var calls = 0
            for try await some in group { calls += some }
            return calls
        }
        return Double(calls) / (began.duration(to: .now) / .seconds(1))
    }

    private static func reads(_ stores: PostgreSQLStores, tasks: Int, seconds: Int) async throws {
        let rate = try await rate(tasks: tasks, seconds: seconds) {
            let account = Int64.random(in: 1...100_000)
            _ = try await stores.finds("SELECT abalance FROM pgbench_accounts WHERE aid = $1", account)
        }
        print("\(Int(rate))")
    }

    private static func registrations(_ stores: PostgreSQLStores, tasks: Int, count: Int) async throws {
        let app = try await Sample.addApp(to: stores)
        let rate = try await rate(tasks: tasks, count: count) {
            let device = try Sample.device(key: DevicePublicKey(P256.Signing.PrivateKey().publicKey))
            _ = try await stores.devices.insert(
                device, under: app, maximumPending: 1, recording: try Sample.event(.deviceRegistered, device.deviceID))
        }
        print("\(Int(rate)) registrations/s, \(tasks) at a time")
    }

    private static func claims(_ stores: PostgreSQLStores, tasks: Int, seconds: Int) async throws {
        let device = DeviceID(from: SystemRandom())
        let rate = try await rate(tasks: tasks, seconds: seconds) {
            let now = SystemClock().now
            let claims = (0..<2).map { _ in ReplayClaim(high: .random(in: 0 ... .max), low: .random(in: 0 ... .max)) }
            _ = try await stores.replay.claim(
                claims, of: device, timestamp: now, expiresAt: now + 660, now: now, futureWindow: 60)
        }
        print("\(Int(rate)) signed requests' claims/s, \(tasks) at a time")
    }

    private static func devices(_ stores: PostgreSQLStores, count: Int, lookUps: Int) async throws {
        var delays: [Double] = []
        for _ in 0..<lookUps {
            let id = try DeviceID(Sample.id(of: .random(in: 0..<count)))
            let began = ContinuousClock.now
            guard try await stores.devices.device(id, of: try Sample.app()) != nil else {
                return print("there is no device \(id)")
            }
            delays.append(began.duration(to: .now) / .milliseconds(1))
        }
        delays.sort()
        func at(_ share: Double) -> String {
            String(format: "%.2f ms", delays[Int(Double(delays.count - 1) * share)])
        }
        print("look-up of any of \(count) devices: p50 \(at(0.5)), p99 \(at(0.99)), longest \(at(1))")
    }
}

/// Generated devices. They differ only in their ids, keys and registration times.
private enum Sample {
    static func app() throws -> AppID { try AppID("bench.app") }

    private static let assurance = Assurance(app: .playIntegrity, key: .strongbox)

    static func addApp(to stores: PostgreSQLStores) async throws -> StoredApp {
        let stored = StoredApp(appID: try app(), sealedJSON: "{}")
        _ = try await stores.apps.insert(stored, recording: try event(.appAdded, nil))
        return stored
    }

    static func event(_ code: AuditEvent.Code, _ device: DeviceID?) throws -> AuditEvent {
        AuditEvent(code, at: SystemClock().now, actor: "benchmark", appID: try app(), deviceID: device)
    }

    static func device(key: DevicePublicKey) throws -> DeviceRecord {
        DeviceRecord(
            appID: try app(), deviceID: DeviceID(from: SystemRandom()), platform: .android, status: .registered,
            key: key,
            assurance: assurance, registeredAt: SystemClock().now)
    }

    /// The id of a generated device. Ids of neighbouring numbers are unrelated, like random ones.
    static func id(of number: Int) -> String {
        var bytes = Array(SHA256.hash(data: Data("\(number)".utf8)).prefix(16))
        bytes[6] = bytes[6] & 0x0F | 0x40
        bytes[8] = bytes[8] & 0x3F | 0x80
        return UUID(uuid: bytes.withUnsafeBytes { $0.loadUnaligned(as: uuid_t.self) }).uuidString.lowercased()
    }

    /// Prints rows of the table `devices` or `keys`, for COPY. Many devices share a public key, which does not affect
    /// look-ups, because the table `keys` has a different thumbprint for each device.
    static func printRows(of table: String, count: Int) throws {
        let keys = (0..<256).map { _ in
            DevicePublicKey(P256.Signing.PrivateKey().publicKey).spki.map { String(format: "%02x", $0) }.joined()
        }
        let assurance = JSONValue.object(self.assurance.json).text()
        var text = ""
        for number in 0..<count {
            switch table {
            case "devices":
                text += """
                    \(id(of: number))\tbench.app\tandroid\tregistered\t\\\\x\(keys[number % keys.count])\t\
                    \(assurance)\tf\t\(1_700_000_000 + number)\t1\tf\t0\n
                    """
            default:
                let thumbprint = Data(SHA256.hash(data: Data("key \(number)".utf8))).base64EncodedString()
                text += "\(thumbprint)\t\(id(of: number))\tcurrent\n"
            }
            if text.utf8.count > 1 << 20 {
                try FileHandle.standardOutput.write(contentsOf: Data(text.utf8))
                text = ""
            }
        }
        try FileHandle.standardOutput.write(contentsOf: Data(text.utf8))
    }
}

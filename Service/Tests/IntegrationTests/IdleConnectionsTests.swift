import AuthContract
import Crypto
import Foundation
import Testing

/// Clients that connect and then stay idle. `IDLE_CONNECTIONS` is their number (default 1000).
@Suite struct IdleConnections {
    static let count = ProcessInfo.processInfo.environment["IDLE_CONNECTIONS"].flatMap { Int($0) } ?? 1000

    let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder() }

    @Test func `signed requests are served within a second while others hold idle connections`() async throws {
        OpenFileLimit.raise()
        let fixture = try await ServiceFixture(database: folder.path("db.sqlite"))
        // Long timeouts and a high limit, so that the service closes no connection before all are open.
        let patient = [
            "SYNHEART_AUTH_LIMITS_HEAD_SECONDS": "600", "SYNHEART_AUTH_LIMITS_IDLE_SECONDS": "600",
            "SYNHEART_AUTH_MAXIMUM_CONNECTIONS_PER_ADDRESS": "16384",
        ]
        let service = try await fixture.start(environment: patient)
        let device = try #require(await DevelopmentDevice.register(P256.Signing.PrivateKey(), port: service.port))
        let before = Self.residentKilobytes(service.processID)

        var idle: [WireConnection] = []
        let read = WireRequest(method: "GET", target: Route.keySet.rawValue)
        for number in 0..<Self.count {
            let connection = try #require(
                WireConnection(port: service.port), "\(number) connections: the service no longer listens")
            idle.append(connection)
            // A third sent nothing, a third sent part of a request, a third got an answer.
            switch number % 3 {
            case 0: break
            case 1: await connection.send(Array(read.bytes.prefix(20)))
            default: #expect(await connection.exchange([read]).first?.status == 200)
            }
        }
        var times: [Duration] = []
        for _ in 0..<50 {
            let started = ContinuousClock.now
            let answer = await WireConnection.exchange(port: service.port, try device.request(.status))
            times.append(started.duration(to: .now))
            #expect(answer?.status == 200, "\(answer?.text ?? "no answer")")
        }
        // The median, because a busy machine may delay single requests.
        let median = times.sorted()[times.count / 2]
        #expect(median < .seconds(1))
        let after = Self.residentKilobytes(service.processID)
        print(
            "\(idle.count) idle connections: the median of 50 signed requests took \(median);",
            "resident memory \(before) kB before, \(after) kB with them,",
            "\(Double((after - before) * 10 / max(idle.count, 1)) / 10) kB each")
        idle = []
        #expect(service.stop() == 0)
    }

    private static func residentKilobytes(_ process: Int32) -> Int {
        let status = (try? String(contentsOfFile: "/proc/\(process)/status", encoding: .utf8)) ?? ""
        let line = status.split(separator: "\n").first { $0.hasPrefix("VmRSS:") }
        return line?.split(separator: " ").compactMap { Int($0) }.first ?? 0
    }
}

/// The limit on open file descriptors. Tests raise it, because each of their connections is a descriptor of the test process.
enum OpenFileLimit {
    static func raise() {
        var limit = rlimit()
        let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
        guard getrlimit(resource, &limit) == 0 else { return }
        limit.rlim_cur = limit.rlim_max
        setrlimit(resource, &limit)
    }
}

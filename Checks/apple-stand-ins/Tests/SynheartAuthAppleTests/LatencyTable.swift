import CryptoKit
import DeviceCheck
import Foundation
import Security
import Testing

@testable import SynheartAuth

extension AppleTests {
    /// The waits of an app if each call of the Keychain takes 2 ms and each of the Secure Enclave 8 ms: a benchmark, which
    /// `Checks/benchmarks/latency` runs. The network and App Attest take no time here.
    @Suite(.serialized, .enabled(if: ProcessInfo.processInfo.environment["SYNHEART_AUTH_LATENCY"] != nil))
    struct LatencyTable {
        private static let rounds = 200

        init() {
            StandInKeychain.reset()
            StandInAppAttest.reset()
            StandInActivity.deny(false)
            SecureEnclave.setAvailable(true)
            StandInKeychain.slow(keychain: 2, enclave: 8)
        }

        @Test("what an app waits for")
        func table() async throws {
            var rows: [(name: String, times: [Double], calls: String)] = []
            func measure(_ name: String, rounds: Int, _ body: (Int) async throws -> Void) async throws {
                var times: [Double] = []
                _ = StandInKeychain.takeCalls()
                var calls = (keychain: 0, enclave: 0)
                for round in 0..<rounds {
                    let begin = ContinuousClock.now
                    try await body(round)
                    times.append(begin.duration(to: .now) / .milliseconds(1))
                    calls = StandInKeychain.takeCalls()
                }
                rows.append((name, times.sorted(), "\(calls.keychain) + \(calls.enclave)"))
            }
            let phones = (0..<Self.rounds / 10).map { _ in Phone() }
            // Each measurement starts with an empty Keychain, as a first launch does.
            try await measure("first launch: isRegistered", rounds: phones.count) { round in
                StandInKeychain.reset()
                StandInKeychain.slow(keychain: 2, enclave: 8)
                _ = try await phones[round].launchOnApple().isRegistered(appID: Phone.app)
            }
            try await measure("first launch: registerDevice", rounds: phones.count) { round in
                StandInKeychain.reset()
                StandInKeychain.slow(keychain: 2, enclave: 8)
                try await phones[round].launchOnApple().registerDevice(appID: Phone.app)
            }
            let phone = try #require(phones.last)
            try await measure("first signRequest of a process", rounds: Self.rounds) { _ in
                _ = try await phone.launchOnApple().signRequest(appID: Phone.app, method: "GET", path: "/")
            }
            try await measure("later launch: registerDevice", rounds: Self.rounds) { _ in
                try await phone.launchOnApple().registerDevice(appID: Phone.app)
            }
            let sdk = try phone.launchOnApple()
            _ = try await sdk.signRequest(appID: Phone.app, method: "GET", path: "/")
            try await measure("each later signRequest", rounds: Self.rounds) { _ in
                _ = try await sdk.signRequest(appID: Phone.app, method: "GET", path: "/")
            }
            let two = try phone.launchOnApple(scheme: .two)
            _ = try await two.sign(appID: Phone.app, method: "GET", url: "https://auth.test/v1/me")
            try await measure("each later sign under scheme 2", rounds: Self.rounds) { _ in
                _ = try await two.sign(appID: Phone.app, method: "GET", url: "https://auth.test/v1/me")
            }
            print("| what | calls of Keychain + Secure Enclave | p50 | p99 |\n|---|---|---|---|")
            for row in rows {
                func at(_ share: Double) -> String {
                    String(format: "%.1f ms", row.times[Int(Double(row.times.count - 1) * share)])
                }
                print("| \(row.name) | \(row.calls) | \(at(0.5)) | \(at(0.99)) |")
            }
            StandInKeychain.reset()
        }
    }
}

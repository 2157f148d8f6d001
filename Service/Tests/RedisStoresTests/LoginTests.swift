import AuthService
import Bytes
import RESP
import Testing

@testable import RedisStores

@Suite("Login")
struct LoginTests {
    private static let unknownHello =
        "ERR unknown command 'HELLO', with args beginning with: '3' 'AUTH' 'user' 'hush'"

    /// Answers that a server may give to the password.
    private static let refusals = [
        "ERR unknown command 'AUTH', with args beginning with: 'user' 'hush' ", "ERR hush", "hush", "hush hush",
        "WRONGPASS hush", "NOAUTH hush", "NOPERM hush", "LOADING hush",
    ]

    private static func reason(of error: String, for command: String) async throws -> (String, [StoreCheckResult]) {
        let server = try await FakeServer { words in
            switch words.first {
            case command: .text("-\(error)\r\n")
            case "HELLO": .text("-\(unknownHello)\r\n")
            default: nil
            }
        }
        var settings = ConnectionSettings()
        (settings.login, settings.database) = (RedisURL.Login(user: "user", password: "hush"), 3)
        var reason = "none"
        do throws(StoreError) {
            let connection = try await RedisConnection.open(server.endpoint, settings)
            connection.close(because: StoreError(.unavailable, "done"))
        } catch { reason = "\(error) \(error.reason)" }
        let findings = await RedisStores.diagnose("redis://user:hush@127.0.0.1:\(server.endpoint.port)/3")
        await server.close()
        return (reason, findings)
    }

    @Test(arguments: refusals)
    func `a server that repeats the password puts it into no error and no finding`(_ error: String) async throws {
        for command in ["AUTH", "SELECT"] {
            let (reason, findings) = try await Self.reason(of: error, for: command)
            #expect(reason != "none" && !reason.contains("hush"), "\(reason)")
            #expect(!findings.contains { "\($0)".contains("hush") }, "\(findings)")
        }
        guard !error.hasPrefix("ERR") else { return }
        let (reason, findings) = try await Self.reason(of: error, for: "HELLO")
        #expect(reason != "none" && !reason.contains("hush"), "\(reason)")
        #expect(!findings.contains { "\($0)".contains("hush") }, "\(findings)")
    }

    @Test func `the errors of a login lead to the advice that helps`() {
        for text in ["ERR unknown command 'AUTH'", "WRONGPASS no", "NOAUTH no", "other"] {
            #expect(RedisError(text).loginError.reason.contains("password"))
        }
        #expect(RedisError("NOPERM no").loginError.reason.contains("ACL"))
        #expect(RedisError("LOADING x").loginError.reason == "Redis takes no login now (LOADING)")
    }
}

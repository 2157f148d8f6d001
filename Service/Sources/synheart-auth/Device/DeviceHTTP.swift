import AuthContract
import Foundation
import SoftwareDevice
import StrictJSON
import SynheartAuth

/// Sends signed requests of a software device to its service. A refusal is returned as an answer, not thrown.
struct DeviceHTTP {
    private let device: SoftwareDevice
    private let transport = DefaultTransport()

    init(_ device: SoftwareDevice) { self.device = device }

    struct Answer {
        let status: Int
        let body: JSONValue

        /// The error for an answer that is no success: `impossible` for the statuses 429 and 5xx, otherwise `refused`.
        var failure: CommandFailure {
            CommandFailure(
                status == 429 || status >= 500 ? .impossible : .refused,
                "\(status) \(code ?? "") \(body.object?["message"]?.string ?? "")")
        }

        var code: String? { body.object?["error"]?.string }
    }

    /// The headers of a request to one of the service's own routes, under the scheme that the device signs with.
    func sign(_ route: Route) async throws -> [(name: String, value: String)] {
        try await sign(route, body: [], with: device.sdk, asserting: false)
    }

    /// Signs and sends a request. If the service demands scheme 2 or an App Attest assertion, signs and sends it again as demanded.
    /// If the signature is invalid, finishes an interrupted rotation, then signs and sends it again.
    func send(_ route: Route, body: [UInt8] = []) async throws -> Answer {
        var (isSchemeTwo, asserts, hasFinished) = (false, false, false)
        while true {
            let headers = try await sign(
                route, body: body, with: isSchemeTwo ? device.sdkOfSchemeTwo : device.sdk, asserting: asserts)
            let answer = try await send(route, headers: headers, body: body)
            switch answer.code {
            case ErrorCode.unsupportedSigVersion.rawValue where !isSchemeTwo: isSchemeTwo = true
            case ErrorCode.assertionRequired.rawValue where !asserts: asserts = true
            case ErrorCode.invalidSignature.rawValue where !hasFinished:
                hasFinished = true
                try await asking { try await device.sdk.maintain(appID: device.settings.appID.text) }
            default: return answer
            }
        }
    }

    private func sign(
        _ route: Route, body: [UInt8], with sdk: SynheartAuth, asserting: Bool
    ) async throws -> [(name: String, value: String)] {
        try await asking {
            try await sdk.sign(
                appID: device.settings.appID.text, method: route.method, url: device.settings.url + route.rawValue,
                bodyBytes: body, asserting: asserting)
        }.fields
    }

    /// Sends a request with these headers, which may be those of an earlier request.
    func send(_ route: Route, headers: [(name: String, value: String)], body: [UInt8] = []) async throws -> Answer {
        let response: TransportResponse
        do {
            response = try await transport.send(
                TransportRequest(
                    method: route.method, url: device.settings.url + route.rawValue,
                    headers: HeaderFields(headers.map { ($0.name, $0.value) }),
                    body: body))
        } catch { throw CommandFailure(.impossible, "cannot reach \(device.settings.url): \(error)") }
        return Answer(status: response.status, body: (try? JSONValue(parsing: response.body)) ?? .null)
    }
}

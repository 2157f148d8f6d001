import AuthContract
import StrictJSON
import SynheartAuth

/// Sends a request to each configured origin, as a phone would, and checks that a service over the same stores answers.
struct OriginChecks {
    let origins: [RequestOrigin]
    /// The `kid`s of the signing keys in the stores.
    let keys: Set<String>

    func run(_ report: inout DoctorReport) async {
        for origin in origins { await check(origin, &report) }
    }

    private func check(_ origin: RequestOrigin, _ report: inout DoctorReport) async {
        let answer: TransportResponse
        do {
            answer = try await DefaultTransport().send(
                TransportRequest(
                    method: "GET", url: "\(origin)\(Route.keySet.rawValue)", headers: HeaderFields(), body: []))
        } catch {
            return report.warn(
                "reach", "\(origin) cannot be reached from here: \(error)",
                do:
                    "right before the start, and on a machine that is not meant to reach it; else mend the name, the proxy "
                    + "or server.public_origin")
        }
        let mend =
            "phones that sign for another origin are answered MISDIRECTED_REQUEST: set server.public_origin to where "
            + "they reach the service, or mend what answers there"
        if (300..<400).contains(answer.status) {
            let place = answer.headers.values("Location").first ?? "elsewhere"
            return report.fail("reach", "\(origin) redirects to \(place)", do: mend)
        }
        let listed = try? JSONValue(parsing: answer.body).object?["keys"]?.array
        guard answer.status == 200, let listed else {
            return report.fail(
                "reach", "at \(origin) no service of this kind answers, status \(answer.status)", do: mend)
        }
        // Before the first key is stored there is nothing to compare.
        guard keys.isEmpty || listed.contains(where: { $0.object?["kid"]?.string.map(keys.contains) ?? false }) else {
            return report.fail("reach", "at \(origin) a service with other stores answers", do: mend)
        }
        report.ok("reach", "\(origin) leads to a service over these stores")
    }
}

import AuthContract
import AuthService
import StrictJSON
import SynheartAuth

/// Checks of a running service, over HTTP.
struct ServiceChecks {
    let url: String

    func run(_ report: inout DoctorReport) async {
        let started = SystemClock().now
        let answer: TransportResponse
        do {
            let origin = url.hasSuffix("/") ? String(url.dropLast()) : url
            answer = try await DefaultTransport().send(
                TransportRequest(method: "GET", url: origin + "/readyz", headers: HeaderFields(), body: []))
        } catch {
            return report.fail(
                "service", "\(url) cannot be reached: \(error)",
                do: "start it, or name its operations listener by --url")
        }
        guard let body = try? JSONValue(parsing: answer.body).object, let checks = body["checks"]?.object else {
            return report.fail(
                "service", "\(url) is no operations listener, status \(answer.status)",
                do: "name the operations listener, not the public one")
        }
        for failure in body["failures"]?.object?.members ?? [] {
            report.fail(
                "service", "not ready: \(failure.name): \(failure.value.string ?? "")",
                do: "the page Operating of the documentation says what each check is")
        }
        for degraded in body["degraded"]?.object?.members ?? [] {
            let found = degraded.value.object
            let until = found?["until"]?.string.map { ", until \($0)" } ?? ""
            report.warn(
                "service", "degraded: \(degraded.name): \(found?["reason"]?.string ?? "")\(until)",
                do: "the page Operating of the documentation says what each check is")
        }
        if answer.status == 200 { report.ok("service", "\(url) is ready: \(checks.members.count) checks") }
        compareClock(answer.headers, since: started, &report)
    }

    private func compareClock(_ headers: HeaderFields, since started: UnixTime, _ report: inout DoctorReport) {
        guard let text = headers.values(HeaderName.serverTime).first, let theirs = Int64(text).map({ UnixTime($0) })
        else { return }
        let apart = max(started - theirs, theirs - SystemClock().now, 0)
        guard apart <= 30 else {
            return report.warn(
                "service", "its clock and this machine's are \(apart) s apart", do: "let NTP keep both of them")
        }
    }
}

import ArgumentParser
import AuthContract

/// The devices that a decision is about: one, or many of an app.
struct DecisionTarget: ParsableArguments {
    @Option(name: .customLong("app"), help: "The app id.") var app: String
    @Argument(help: "The device id; for many devices --from or --where.") var device: String?
    @Option(help: "A file with device ids, one a line; - is standard input. Lines that begin with # do not count.")
    var from: String?
    @Option(
        name: .customLong("where"),
        help: ArgumentHelp(
            "All devices of the app that meet this condition; may be repeated, and all must hold.",
            discussion: "Names: " + FleetQuery.Name.allCases.map(\.rawValue).joined(separator: ", ")
                + ". Times are ISO 8601.",
            valueName: "NAME=VALUE"))
    var conditions: [String] = []
    @Flag(name: .customLong("dry-run"), help: "Change nothing; say what would change.") var isDryRun = false
    @Option(help: "With --from or --where: the most devices a second. Default: 50.") var rate: Double?
    @Option(
        help: ArgumentHelp(
            "A file that keeps the selected devices and what was done, so that a rerun goes on from there.",
            discussion: "With --dry-run first, the rerun without it changes exactly the devices that were shown.",
            valueName: "FILE"))
    var resume: String?

    var isMany: Bool { from != nil || !conditions.isEmpty }

    func validate() throws {
        guard [device != nil, from != nil, !conditions.isEmpty].count(where: { $0 }) == 1 else {
            throw ValidationError("name one device, or many with --from or --where")
        }
        guard isMany || (!isDryRun && rate == nil && resume == nil) else {
            throw ValidationError("--dry-run, --rate and --resume go with --from or --where")
        }
        guard rate.map({ 0.01...10_000 ~= $0 }) ?? true else { throw ValidationError("--rate is 0.01 to 10000") }
        _ = try FleetQuery(conditions)
    }

    /// The parameters of a call about the one device.
    func parameters(of device: String) -> [String: String] { ["app_id": app, "device_id": device] }

    /// The ids in the file, in order and without duplicates; nil: no file is given.
    func idsOfFile() throws -> [String]? {
        guard let from else { return nil }
        var (ids, seen) = ([String](), Set<String>())
        let lines = try InputFile.text(from).split(omittingEmptySubsequences: false, whereSeparator: \.isNewline)
        for (number, line) in lines.enumerated() {
            let text = line.drop { $0 == " " || $0 == "\t" }.prefix { !$0.isWhitespace }
            guard !text.isEmpty, !text.hasPrefix("#") else { continue }
            guard let id = try? DeviceID(String(text)), text.utf8.count == line.utf8.count(where: { $0 > 0x20 }) else {
                throw CommandFailure(
                    .impossible, "\(from), line \(number + 1): expected one device id, such as of `devices list`")
            }
            if seen.insert(id.text).inserted { ids.append(id.text) }
        }
        return ids
    }
}

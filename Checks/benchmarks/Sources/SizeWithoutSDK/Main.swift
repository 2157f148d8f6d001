import PlainApp

/// An app without the SDK: what the SDK adds is measured against it.
@main
struct SizeWithoutSDK {
    static func main() async throws { print(try await signAndSend(to: CommandLine.arguments[1])) }
}

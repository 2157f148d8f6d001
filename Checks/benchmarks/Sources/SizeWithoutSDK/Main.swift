import PlainApp

/// An app without the SDK. The benchmark subtracts its size from that of `SizeWithSDK`.
@main
struct SizeWithoutSDK {
    static func main() async throws { print(try await signAndSend(to: CommandLine.arguments[1])) }
}

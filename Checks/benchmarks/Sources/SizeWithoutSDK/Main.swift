import PlainApp

/// An app without the SDK: the size of the SDK is the difference from it.
@main
struct SizeWithoutSDK {
    static func main() async throws { print(try await signAndSend(to: CommandLine.arguments[1])) }
}

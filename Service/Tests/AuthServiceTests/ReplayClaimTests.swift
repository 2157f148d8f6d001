import AuthContract
import AuthService
import Testing

@Suite struct ReplayClaimTests {
    /// The journal of replay claims outlives an upgrade of the service: earlier claims must be found after the upgrade. The expected values
    /// were computed with another implementation of SHA-256, over the 16 bytes of the device id, one byte for the kind, and the value.
    @Test func `claims from before an upgrade are found after it`() throws {
        let device = try DeviceID("123e4567-e89b-42d3-a456-426614174000")
        let nonce = try RequestNonce("00112233-4455-4677-8899-AABBCCDDEEFF")
        #expect(
            ReplayClaim.nonce(nonce, of: device) == ReplayClaim(high: 0x9F23_3F03_548F_4706, low: 0x8462_59C7_92B7_7EC1)
        )
        let signature = try RequestSignature(raw: Array(1...64))
        #expect(
            ReplayClaim.signatureR(signature, of: device)
                == ReplayClaim(high: 0x6E30_9F07_3EF8_CAAE, low: 0xC4DA_E06C_FF10_DFB7))
        #expect(
            ReplayClaim.signatureBase(Array(32..<64), of: device)
                == ReplayClaim(high: 0x2869_0D17_98F2_E4A2, low: 0x4362_2460_57F3_79A6))
    }
}

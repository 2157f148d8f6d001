import Bytes
import Foundation
import Testing

@Suite struct Base64Tests {
    @Test(arguments: [
        ("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg=="), ("fooba", "Zm9vYmE="),
        ("foobar", "Zm9vYmFy"),
    ])
    func `the examples of RFC 4648 section 10 are written and read`(plain: String, text: String) {
        #expect(Base64.standard.encode(Array(plain.utf8)) == text)
        #expect(Base64.standard.decode(text) == Array(plain.utf8))
        let unpadded = text.replacingOccurrences(of: "=", with: "")
        #expect(Base64.url.encode(Array(plain.utf8)) == unpadded)
        #expect(Base64.url.decode(unpadded) == Array(plain.utf8))
    }

    @Test func `every length up to 100 is written as Foundation writes it, and read back`() {
        var generator = SystemRandomNumberGenerator()
        for length in 0...100 {
            let bytes = (0..<length).map { _ in UInt8.random(in: 0...255, using: &generator) }
            let text = Base64.standard.encode(bytes)
            #expect(text == Data(bytes).base64EncodedString())
            #expect(Base64.standard.decode(text) == bytes)
            #expect(Base64.url.decode(Base64.url.encode(bytes)) == bytes)
            #expect(Base64.decodeLenient(text) == bytes)
        }
    }

    @Test func `every character but those of the alphabet is refused at every place`() {
        let alphabet = Set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)
        for place in 0..<8 {
            for byte in UInt8.min...UInt8.max where byte != UInt8(ascii: "=") {
                var text = Array("AAAAAAAA".utf8)
                text[place] = byte
                #expect((Base64.standard.decode(bytes: text) != nil) == alphabet.contains(byte), "\(byte) at \(place)")
            }
        }
    }

    @Test(arguments: [
        "Z", "Zg", "Zg=", "Zg===", "Zg==Zg==", "=Zg=", "Z=g=", "====", "=", "Zg== ", " Zg==", "Zg==\n", "Zm 9v", "Zh==",
        "Zm9=",
        "Zm9vY===", "Zm9v====", "_w==", "-w==", "Zgé=",
    ])
    func `text that is not strict standard base64 is refused`(text: String) {
        #expect(Base64.standard.decode(text) == nil)
    }

    @Test(arguments: ["Z", "Zg==", "Zm9v=", "Zh", "Zm9", "+w", "/w", "Zg\n"])
    func `text that is not strict base64url without padding is refused`(text: String) {
        #expect(Base64.url.decode(text) == nil)
    }

    @Test func `the lenient form takes either alphabet, padding or none, and white space`() {
        let bytes: [UInt8] = [0xFB, 0xEF, 0xFF, 0xFE]
        for text in ["++///g==", "--___g", "++///g", "--___g==", "++//\r\n/g==\n", " --__ _g "] {
            #expect(Base64.decodeLenient(text) == bytes, "\(text)")
        }
        #expect(Base64.decodeLenient("++///h") == nil)
        #expect(Base64.decodeLenient("++///g=x") == nil)
        #expect(Base64.decodeLenient("++//*g") == nil)
        #expect(Base64.decodeLenient("A") == nil)
    }

    @Test func `a text of the alphabet is told apart from any other, whatever its last bits are`() {
        #expect(Base64.url.isText("") && Base64.url.isText("Zh") && Base64.url.isText("-_-_"))
        #expect(!Base64.url.isText("Z") && !Base64.url.isText("Zg==") && !Base64.url.isText("+w"))
        #expect(!Base64.url.isText("Zm\n9"))
    }

    @Test func `normalizing changes alphabet and padding alone`() {
        #expect(Base64.normalized("a+/b==") == "a-_b")
        #expect(Base64.normalized("a-_b") == "a-_b")
        #expect(Base64.normalized("a b=c") == "a b=c")
    }
}

internal import Bytes

/// The keys of Google's roots. Those for hardware are from [Google's list](https://android.googleapis.com/attestation/root).
enum GoogleRoots {
    struct Root: Sendable {
        let label: String
        let spki: [UInt8]
        let subject: [UInt8]

        init(_ label: String, spki: String, subject: String) {
            self.label = label
            self.spki = Base64.standard.decode(spki) ?? []
            self.subject = Base64.standard.decode(subject) ?? []
        }
    }

    static let hardware = [
        Root(
            "google-hardware-rsa4096",
            spki: """
                MIICIjANBgkqhkiG9w0BAQEFAAOCAg8AMIICCgKCAgEAr7bHgiuxpwHsK7Qui8xUFmOr75gvMsd/dTEDDJdSSxtf6An7xyqpRR90\
                PL2abxM1dEqlXnf2tqw1Ne4Xwl5jlRfdnJLmN0pTy/4lj4/7tv0Sk3iiKkypnEUtR6WfMgH0QZfKHM1+di+y9TFRtv6y//0rb+T+\
                W8a9nsNL/ggjnar86461qO0rOs2cXjp3kOG1FEJ5MVmFmBGtnrKpa73XpXyTqRxB/M0n1n/W9nGqC4FSYa04T6N5RIZGBN2z2MT5\
                IKGbFlbC8UrW0DxW7AYImQQcHtGl/m00QLVWutHQoVJYnFPlXTcHYvASLu+RhhsbDmxMgJJ0mcDpvsC4PjvB+TxywElgS70vE0Xm\
                LD+OJtvsBslHZvPBKCOdT0MS+tgSOIfga+z1Z1g7+DVagf7quvmag8jfPioyKvxnK/EgsTUVi2ghzq8wm27ud/mIM7AY2qEORR8G\
                o3TVB4HzWQgpZrt3i5MIlCaY504LzSRiigHCzAPlHws+W0rB5N+er5/2pJKnfBSDiCiFAVtCLOZ7gLiMm0jhO2B6tUXHI/+MRPjy\
                02i59lINMRRev56GKtcd9qO/0kUJWdZTdA2XoS82ixPvZtXQpUpuL12ab+9EaDK8Z4RHJYYfCT3Q5vNAXaiWQ+8PTWm2QgBR/bkw\
                SWc+NpUFgNPN9PvQi8WEg5UmAGMCAwEAAQ==
                """,
            subject: "MBsxGTAXBgNVBAUTEGY5MjAwOWU4NTNiNmIwNDU="),
        Root(
            "google-hardware-ecp384-2026",
            spki: """
                MHYwEAYHKoZIzj0CAQYFK4EEACIDYgAEI9ojcU7fPlsFCjxy6IRqzgeOoK0b+YsV9FPQywiyw8EQRTkJ9u3qwfnI4DGoSLlBqClT\
                XJfgfCcZvs60FikNMHnu4fkRzObfgDkU2KNXezT9/RQ+XvNslxPHrHCowhGr
                """,
            subject: """
                MFIxHDAaBgNVBAMME0tleSBBdHRlc3RhdGlvbiBDQTExEDAOBgNVBAsMB0FuZHJvaWQxEzARBgNVBAoMCkdvb2dsZSBMTEMx\
                CzAJBgNVBAYTAlVT
                """),
    ]

    /// The roots for keys that Android makes in software. The private keys of these roots are public: they are in Android's
    /// sources, so anyone can sign with them.
    static let software = [
        Root(
            "google-software-ec",
            spki: """
                MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE7l1ex+HA220Dpn7mthvsTWpdamguD/9/SQ59dx9EIm29sa/6FsvHrcV30lacqrew\
                LVQBXT5DKyqO107sSHVBpA==
                """,
            subject: """
                MIGYMQswCQYDVQQGEwJVUzETMBEGA1UECAwKQ2FsaWZvcm5pYTEWMBQGA1UEBwwNTW91bnRhaW4gVmlldzEVMBMGA1UECgwMR29v\
                Z2xlLCBJbmMuMRAwDgYDVQQLDAdBbmRyb2lkMTMwMQYDVQQDDCpBbmRyb2lkIEtleXN0b3JlIFNvZnR3YXJlIEF0dGVzdGF0aW9u\
                IFJvb3Q=
                """),
        Root(
            "google-software-rsa",
            spki: """
                MIGfMA0GCSqGSIb3DQEBAQUAA4GNADCBiQKBgQCia63rbi5EYe/VDoLmt5TRdSMfd5tjkWP/96r/C3JHTsAsQ+wzfNes7UA+jCig\
                ZtX3hwszl94OuE4TQKuvpSe/lWmgMdsGUmX4RFlXYfC78hdLt0GAZMAoDo9Sd47b0ke2RekZyOmLw9vCkT/X11DEHTVm+Vfkl5YL\
                CazOkjWFmwIDAQAB
                """,
            subject: """
                MGMxCzAJBgNVBAYTAlVTMRMwEQYDVQQIDApDYWxpZm9ybmlhMRYwFAYDVQQHDA1Nb3VudGFpbiBWaWV3MRUwEwYDVQQKDAxHb29n\
                bGUsIEluYy4xEDAOBgNVBAsMB0FuZHJvaWQ=
                """),
    ]
}

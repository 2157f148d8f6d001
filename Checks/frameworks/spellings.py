"""Spellings of the paths `/v1/pay` and `/v1/pay/now`, as an attacker with the device's key would try them."""

import string

PAY, NOW = "/v1/pay", "/v1/pay/now"
# Characters that some software treats as white space or as structure, or drops.
HIDDEN = ["%20", "%09", "%0a", "%0A", "%0d", "%0d%0a", "%0a%0a", "%0b", "%0c", "%1f", "%7f", "%20%20", "%c2%85", "%c2%a0", "%e2%80%a8",
          "%e2%80%8b", "%ef%bb%bf", "%ad", "%85", "%a0"]
STRUCTURE = ["%2f", "%2F", "%5c", "%5C", "\\", ";", "%3b", "%3B", ";x=1", ";x=/", "%3bx", "%3f", "%3F", "%23", "%25", "%2e", "%2E",
             ".", "..", "%2e%2e", "//", "///", "/./", "/../", "/%2e/", "/.%2e/", "%252f", "%252e", "%25%32%66", "%c0%af", "%e0%80%af",
             "%c1%9c", "%ef%bc%8f", "%ef%bc%bc", "%ef%bc%9b", "%u002f", "%%2f", "%", "%2", "%zz", "%+1", "+", ":", "@", "|", "^", "~",
             ",", "!", "=", "&"]


def spellings():
    """About 900 spellings. Each begins with `/` and is written as on the wire."""
    found = [PAY, NOW]
    # A byte after the path: each as an escape, the printable ones raw too.
    found += [f"{PAY}%{byte:02x}" for byte in range(256)]
    found += [PAY + character for character in string.printable[:94] if character not in "#?"]
    # Letters of the path as escapes, in the other case, twice escaped, and as letters that only look or fold like them.
    found += ["/%76%31/%70%61%79", "/v%31/pay", "/v1/%70ay", "/v1/p%61y", "/v1/pa%79", "/v1/PAY", "/V1/pay", "/V1/PAY", "/v1/%50AY",
              "/%561/Pay", "/%2570ay", "/v1/%2570ay", "/v1/%25%37%30ay", "/v1/%u0070ay", "/v1/%%37%30ay", "/v1/%70%41y",
              "/v1/%ef%bd%90ay", "/v1/p%d0%b0y", "/v1/pa%c3%bd", "/v1/p%cc%81ay", "/v1/%7", "/v%ef%bc%91/pay"]
    # Slashes.
    found += ["//v1/pay", "///v1/pay", "////v1/pay", "/v1//pay", "/v1///pay", "//v1//pay//", "/v1/pay/", "/v1/pay//", "/v1/pay//now",
              "//x/v1/pay", "//x//v1/pay", "///x/v1/pay", "////x/v1/pay", "//x:80/v1/pay", "//u@x/v1/pay", "//u:p@x:80/v1/pay",
              "//127.0.0.1/v1/pay", "//[::1]/v1/pay", "//localhost/v1/pay/now", "//x/V1/pay", "//x/%761/pay", "//%78/v1/pay", "//./v1/pay",
              "//../v1/pay", "/%2fx/v1/pay", "/%2f/v1/pay", "//%2f/v1/pay", "/\\x/v1/pay", "/\\/v1/pay", "//x\\v1\\pay",
              "/x:/v1/pay", "/http://x/v1/pay", "/http:/v1/pay", "/:80/v1/pay", "/@x/v1/pay", "/~/v1/pay", "/*/v1/pay", "//x;/v1/pay",
              "//;x/v1/pay", "/%20/v1/pay", "/%09/v1/pay", "/%0a/v1/pay", "/x%0a/v1/pay", "/x/%0a/v1/pay", "/./v1/pay", "/x/../v1/pay",
              "/v1/./pay", "/v1/x/../pay", "/%2e/v1/pay", "/x/%2e%2e/v1/pay", "/x/.%2e/v1/pay", "/x/..;/v1/pay", "/x/..%3b/v1/pay",
              "/x/..%2fv1/pay", "/x/..%5cv1/pay", "/x/..\\v1\\pay", "/x/%252e%252e/v1/pay", "/x/..%00/v1/pay", "/x/..%0a/v1/pay",
              "/x/.%0a./v1/pay", "/x/..%20/v1/pay", "/x/.../v1/pay", "/x/..x/v1/pay"]
    # Format suffixes, and characters that frameworks cut off at the end.
    found += ["/v1/pay.json", "/v1/pay.JSON", "/v1/pay.html", "/v1/pay.xml", "/v1/pay.", "/v1/pay..", "/v1/pay%2ejson", "/v1/pay.%6ason",
              "/v1/pay.json/", "/v1/pay.json/now", "/v1/pay/now.json", "/v1/pay/.json", "/v1/pay.json.json", "/v1/pay.%0a", "/v1/pay.json%0a",
              "/v1/pay.json;x", "/v1/pay.x.y", "/v1/PAY.JSON", "/v1/pay%20.json", "/v1/pay.%20", "/v1.json/pay", "/v1/pay::$DATA",
              "/v1/pay/index.html", "/v1/pay/%20", "/v1/pay%20/", "/v1/pay%20/now", "/v1/pay/now%20", "/v1/pay/now%0a", "/v1/pay%0a/now",
              "/v1%20/pay", "/v1/%20pay", "/%20v1/pay", "/v1%0a/pay", "/v1/%0apay", "/%0av1/pay", "/v1;/pay", "/;/v1/pay", "/;x=1/v1/pay",
              "/v1;x=1/pay;y=2", "/v1/;/pay", "/v1/pay;x=1/now"]
    # Each hidden or structural text at each border of a segment.
    for text in HIDDEN + STRUCTURE:
        found += [f"{PAY}{text}", f"{NOW}{text}", f"{PAY}/{text}", f"/{text}v1/pay", f"/v1{text}pay", f"/v1/{text}pay", f"/v1{text}/pay"]
    # Spellings that begin with a path that needs no assertion.
    for text in ["/", "//", "/..", "/../", "/..;/", "/%2e%2e", "/%2e%2e/", "/..%2f", "/..%5c", "\\..\\", "/.%0a./", "/..%20/", "/..%0a/",
                 "/.../", "/%252e%252e/", "/x/..//..", "/;/..", "//x", "/%c0%ae%c0%ae/", "/%ef%bc%8e%ef%bc%8e/", "/%u002e%u002e/",
                 "/..%c0%af", "/..%00/", "/.%00./", ":", "%00", "%0a"]:
        found.append(f"/open{text}{PAY}")
    return list(dict.fromkeys(found))

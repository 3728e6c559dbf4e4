# shellcheck shell=bash
# Source of certificates for node.sh and ../kind.sh.

# certificate NAME SUBJECT EXTENSION: writes NAME.key and NAME.crt into the folder PKI, issued by its ca.crt and ca.key.
certificate() {
  openssl ecparam -name prime256v1 -genkey -noout -out "$PKI/$1.key"
  openssl req -new -key "$PKI/$1.key" -subj "$2" |
    openssl x509 -req -CA "$PKI/ca.crt" -CAkey "$PKI/ca.key" -CAcreateserial -days 30 -out "$PKI/$1.crt" -extfile <(echo "$3") 2>/dev/null
}

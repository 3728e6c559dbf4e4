module github.com/olmv1-rs/sample-operator

go 1.26.0

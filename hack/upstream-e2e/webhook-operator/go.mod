module github.com/olmv1-rs/webhook-operator

go 1.26.0

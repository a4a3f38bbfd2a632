terraform {
  required_providers {
    kura = {
      source = "kurafleet/kura"
    }
  }
}

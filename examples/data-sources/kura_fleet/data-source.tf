data "kura_fleet" "all" {}

check "fleet" {
  assert {
    condition     = data.kura_fleet.all.by_verdict["failed"] + data.kura_fleet.all.by_verdict["stalled"] == 0
    error_message = "of ${data.kura_fleet.all.servers} servers, ${data.kura_fleet.all.by_verdict["failed"]} failed and ${data.kura_fleet.all.by_verdict["stalled"]} are stalled"
  }
}

output "versions" {
  value = data.kura_fleet.all.by_version
}

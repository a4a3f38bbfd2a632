#!/usr/bin/env bash
# Makes tools available and prints the path of each, one a line: internal/tools/build.sh TOOL...
#
# A tool is a folder beside this script whose go.mod names the package and its version; what is missing around it,
# its program `prepare` writes. An installed program of
# exactly that version is used as it is; otherwise it is built once through the Go module proxy and kept in the
# user's cache folder, by version and platform. Progress goes to standard error.
set -euo pipefail

tools=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/kura-tools

say() { printf 'tools: %s\n' "$*" >&2; }

# What a first build takes on two cores, for the person who waits.
usual_time() {
  case $1 in
    tofu) echo "about 5 minutes" ;;
    terraform) echo "about 3 minutes" ;;
    kube-apiserver) echo "about 4 minutes" ;;
    golangci-lint) echo "about a minute and a half" ;;
    external-dns) echo "about 3 minutes" ;;
    *) echo "less than a minute" ;;
  esac
}

ldflags() {
  case $1 in
    tofu) echo "-s -w -X github.com/opentofu/opentofu/version.dev=no" ;; # else it calls itself 1.12.6-dev
    terraform) echo "-s -w -X github.com/hashicorp/terraform/version.dev=no" ;;
    kube-apiserver) echo "-s -w -X k8s.io/component-base/version.gitVersion=$2" ;; # else it calls itself v0.0.0
    *) echo "-s -w" ;;
  esac
}

# own TOOL: is its program ours, around packages of the module? Then no installed one is the same.
own() { [[ -f $tools/$1/main.go ]]; }

# fits PROGRAM MODULE VERSION: is PROGRAM built from exactly this version? What the Go linker stamped is asked
# first; release downloads, which carry no module version, are asked themselves.
fits() {
  local program=$1 module=$2 version=$3 line
  while read -r line; do
    [[ $line == "mod $module $version"* ]] && return 0
  done < <(go version -m "$program" 2>/dev/null | tr -s '\t' ' ' | sed 's/^ //')
  [[ " $(CHECKPOINT_DISABLE=1 TF_CLI_CONFIG_FILE=/dev/null "$program" --version 2>/dev/null | tr '\n' ' ')" =~ [[:space:]]v?"${version#v}"[[:space:]] ]]
}

# In a subshell, so that its trap and its lock end with it, however it ends.
build() (
  tool=$1 package=$2 version=$3 out=$4 SECONDS=0
  mkdir -p "$(dirname "$out")"
  exec 9>"$out.lock"
  if command -v flock >/dev/null; then
    flock -n 9 || { say "$tool: another make builds it, waiting"; flock 9; }
  fi
  [[ ! -x $out ]] || return 0
  say "$tool: building it once for this machine, usually $(usual_time "$tool") on two cores"
  # -mod=mod completes go.mod and go.sum; in a copy, the tree stays clean.
  work=$(mktemp -d "$(dirname "$out")/build.XXXXXX")
  trap 'rm -rf "$work"' EXIT
  cp -R "$tools/$tool/." "$work"
  [[ ! -x $work/prepare ]] || (cd "$work" && ./prepare)
  if ! (cd "$work" && GOWORK=off GOFLAGS='' GOTOOLCHAIN=auto go build -mod=mod -trimpath -buildvcs=false -ldflags "$(ldflags "$tool" "$version")" -o program "$package"); then
    say "$tool: the build failed, see above; it needs the Go module proxy (go env GOPROXY) and about 3 GB for the Go caches"
    exit 1
  fi
  mv "$work/program" "$out"
  say "$tool: built in $SECONDS s, kept as $out"
)

main() {
  [[ $# -gt 0 ]] || { echo "usage: $0 TOOL..." >&2; exit 2; }
  local tool package version module installed out
  for tool; do
    [[ -f $tools/$tool/go.mod ]] || { say "there is no tool named $tool; there are: $(cd "$tools" && echo */ | tr -d /)"; exit 2; }
    package=$(awk '$1 == "tool" { print $2 }' "$tools/$tool/go.mod")
    read -r module version < <(awk '$1 == "require" { print $2, $3 }' "$tools/$tool/go.mod")
    ! own "$tool" || version+=-$(cksum <"$tools/$tool/main.go" | cut -d ' ' -f 1)
    out=$cache/$tool/$version/$(go env GOOS)_$(go env GOARCH)/$tool
    installed=$(own "$tool" || command -v "$tool" || true)
    if [[ ! -x $out && -n $installed ]] && fits "$installed" "$module" "$version"; then
      out=$installed
    elif [[ ! -x $out ]]; then
      build "$tool" "$package" "$version" "$out"
    fi
    printf '%s\n' "$out"
  done
}

main "$@"

// Errors that came across the C ABI: the host's ltc_status objects and their way into ltc::Error.
#pragma once

#include <string>
#include <string_view>

#include "core/base/error.h"
#include "ltc/plugin.h"

// The host's side of an opaque ltc_status. Made through ltc_host_api::status_create, owned by whoever receives it.
struct ltc_status {
  ltc_code code;
  uint32_t node;  // index into the graph's nodes, or LTC_NONE
  std::string message;
};

namespace ltc::host {

// An error that a plugin tied to one node of the graph it was given, so that the caller can name the op and its source line.
class NodeError : public Error {
 public:
  NodeError(Code code, const std::string& message, uint32_t node) : Error(code, message), node_(node) {}
  uint32_t node() const { return node_; }  // index into ltc_graph::nodes

 private:
  uint32_t node_;
};

// LTC_UNSUPPORTED for one node: partition again without it.
class UnsupportedNode : public NodeError {
 public:
  UnsupportedNode(const std::string& message, uint32_t node) : NodeError(Code::kUnsupported, message, node) {}
};

// The plugin's answer breaks the contract: it threw, or what it gave cannot be used. What it was given must be taken as consumed.
class BrokenContract : public Error {
 public:
  explicit BrokenContract(const std::string& message) : Error(Code::kInternal, message) {}
};

// A code of a newer plugin reads as INTERNAL.
Code code_of(ltc_code code);

// Throws what `status` says, as "[<plugin>] <slot>: <message>", and destroys it: an UnsupportedNode, a NodeError, or an Error.
[[noreturn]] void throw_status(std::string_view plugin, const char* slot, ltc_status* status);

// Status objects made and not yet destroyed, of all plugins; 0 when nobody holds one.
size_t live_statuses();

// The functions behind ltc_host_api. status_create never returns null: out of memory has its own, shared object.
ltc_status* status_create(ltc_code code, uint32_t node, const char* message, size_t size) noexcept;
void status_destroy(ltc_status* status) noexcept;

}  // namespace ltc::host

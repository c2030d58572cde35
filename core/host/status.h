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

// An answer of a plugin that is no success. what() is "[<plugin>] <slot>: <said>", without the slot where it is empty.
class PluginError : public Error {
 public:
  PluginError(Code code, std::string_view plugin, std::string_view slot, std::string_view said);

  const std::string& plugin() const { return plugin_; }
  const std::string& said() const { return said_; }

 protected:
  PluginError(const PluginError& error, const std::string& text)
      : Error(error.code(), text), plugin_(error.plugin_), said_(error.said_) {}

 private:
  std::string plugin_, said_;
};

// An error that a plugin tied to one node of the graph it was given, so that the caller can name the op and its source line.
class NodeError : public PluginError {
 public:
  NodeError(Code code, std::string_view plugin, std::string_view slot, std::string_view said, uint32_t node)
      : PluginError(code, plugin, slot, said), node_(node) {}
  uint32_t node() const { return node_; }  // index into ltc_graph::nodes

 private:
  uint32_t node_;
};

// LTC_UNSUPPORTED for one node: partition again without it.
class UnsupportedNode : public NodeError {
 public:
  UnsupportedNode(std::string_view plugin, std::string_view slot, std::string_view said, uint32_t node)
      : NodeError(Code::kUnsupported, plugin, slot, said, node) {}
};

// The plugin's answer breaks the contract: it threw, or its result cannot be used. The host must take the arguments of the call
// as consumed.
class BrokenContract : public PluginError {
 public:
  BrokenContract(std::string_view plugin, std::string_view what) : PluginError(Code::kInternal, plugin, "", what) {}
  // The same with another what().
  BrokenContract(const BrokenContract& error, const std::string& text) : PluginError(error, text) {}
};

// A wait that could not be made. Nothing is known of the work, which may go on: what it uses must stay.
class WaitFailed : public PluginError {
 public:
  explicit WaitFailed(const PluginError& error) : PluginError(error) {}
};

// A code of a newer plugin reads as INTERNAL.
Code code_of(ltc_code code);

// Throws what `status` says and destroys it: an UnsupportedNode, a NodeError, or another PluginError. An address that is no
// status breaks the contract.
[[noreturn]] void throw_status(std::string_view plugin, const char* slot, ltc_status* status);

// Status objects made and not yet destroyed, of all plugins; 0 when nobody holds one.
size_t live_statuses();

// Whether it was made and is not destroyed. Any address.
bool status_exists(const ltc_status* status);

// The functions behind ltc_host_api. status_create never returns null: out of memory has its own, shared object. It keeps what
// message_text keeps of the message. status_destroy leaves alone an address that is no status.
ltc_status* status_create(ltc_code code, uint32_t node, const char* message, size_t size) noexcept;
void status_destroy(ltc_status* status) noexcept;

}  // namespace ltc::host

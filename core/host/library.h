// A shared library that was opened by path. The only user of Boost.DLL is library.cpp.
#pragma once

#include <memory>
#include <string>

namespace ltc::host {

// Opened with RTLD_NOW | RTLD_LOCAL: a plugin that lacks a symbol fails here and not in mid-run, and the libraries that two
// plugins bring along do not see each other's symbols.
class Library {
 public:
  // Throws NOT_FOUND with the dynamic loader's own words, or with ours where it has none: for what is no regular file, is another
  // processor's, or is cut short. Static constructors of the library run.
  static Library open(const std::string& path);

  Library(Library&&) noexcept;
  Library& operator=(Library&&) noexcept;
  ~Library();  // closes, unless kept

  // The address of a symbol, or null.
  void* find(const char* symbol) const;

  // Leaves the library loaded for the life of the process. For one whose code has run: its threads, thread-local destructors and
  // atexit handlers, and those of the drivers it brought along, may run until the very end, and unmapped code crashes there.
  void keep();

 private:
  struct Handle;
  explicit Library(std::shared_ptr<Handle> handle);
  std::shared_ptr<Handle> handle_;
};

// The folder of the library (or executable) that contains this code.
std::string own_folder();

}  // namespace ltc::host

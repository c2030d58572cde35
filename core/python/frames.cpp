#include "core/python/frames.h"

#include <Python.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <filesystem>
#include <memory>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "core/base/error.h"

// Walking frames as objects of the public API would make an object of every frame that records an op: dearer than recording.
#define LTC_KNOWS_FRAMES (PY_VERSION_HEX >= 0x030B0000 && PY_VERSION_HEX < 0x030D0000)
#if LTC_KNOWS_FRAMES
#define Py_BUILD_CORE
#include <internal/pycore_frame.h>
#undef Py_BUILD_CORE
#endif

namespace ltc {
namespace {

std::vector<std::string> g_library_folders;

class Gil {
 public:
  Gil() : state_(PyGILState_Ensure()) {}
  ~Gil() { PyGILState_Release(state_); }

 private:
  PyGILState_STATE state_;
};

std::string file_of(const PyCodeObject* code) {
  const char* file = PyUnicode_AsUTF8(code->co_filename);
  if (file) return file;
  PyErr_Clear();
  return "?";
}

// As the user would write the file's name: relative where it lies below the current folder.
std::string shorten(const std::string& file) {
  std::error_code failed;
  const std::string folder = std::filesystem::current_path(failed).string() + "/";
  return !failed && file.starts_with(folder) ? file.substr(folder.size()) : file;
}

std::string line_text(const std::string& file, int line) { return cat(shorten(file), ":", line); }

#if LTC_KNOWS_FRAMES

// The meaning of an instruction that called into us: the user's line, or one of these.
constexpr LocationId kUnknown = 0, kLibrary = 1u << 30, kEngine = kLibrary + 1;

// Instructions that were met, by address, a table per thread so that nobody waits. Code objects that were met are kept alive, so
// that an address means one instruction; when there are too many of them, all are let go and the tables begin anew.
constexpr size_t kKept = 1 << 14;
std::atomic<uint64_t> g_generation{1};

struct Met {
  const void* instruction;
  LocationId what;
};
struct Table {
  static constexpr int kBits = 12, kProbes = 4;
  uint64_t generation;
  std::array<Met, (1 << kBits) + kProbes> entries;

  // The instruction's entry or, where it has none, one that may become it.
  Met& entry(const void* instruction) {
    Met* first = &entries[(reinterpret_cast<uintptr_t>(instruction) * 0x9E3779B97F4A7C15ull) >> (64 - kBits)];
    for (Met* met = first; met < first + kProbes; ++met) {
      if (met->instruction == instruction || !met->instruction) return *met;
    }
    return *first;
  }
};
LTC_THREAD_LOCAL Table* t_table = nullptr;

Table& fresh_table(uint64_t generation) {
  thread_local const auto table = std::make_unique<Table>();
  t_table = table.get();
  table->entries.fill({});
  table->generation = generation;
  return *table;
}

// With the GIL.
void keep(PyCodeObject* code) {
  static auto* kept = new std::unordered_set<PyCodeObject*>();
  if (kept->size() >= kKept) {
    g_generation += 1;
    const std::unordered_set<PyCodeObject*> dropped = std::exchange(*kept, {});
    for (PyCodeObject* old : dropped) Py_DECREF(old);
  }
  if (kept->insert(code).second) Py_INCREF(code);
}

// The state that Python gave the calling thread; null if it gave none. The first of all states lives as long as Python does,
// others may come and go with each call into Python, so that only the first may be remembered.
PyThreadState* thread_state() {
  static LTC_THREAD_LOCAL PyThreadState* first = nullptr;
  if (first) [[likely]]
    return first;
  PyThreadState* state = PyGILState_GetThisThreadState();
  if (state && PyThreadState_GetID(state) == 1) first = state;
  return state;
}

LocationId classify(const _PyInterpreterFrame& frame) {
  if (_Py_IsFinalizing()) return kLibrary;  // who asks for the GIL now ends
  Gil gil;
  PyCodeObject* code = frame.f_code;
  keep(code);
  const std::string file = file_of(code);
  if (file.ends_with("/torch/autograd/graph.py")) return kEngine;
  const auto holds = [&](const std::string& folder) { return file.starts_with(folder); };
  if (file.starts_with("<frozen") || std::ranges::any_of(g_library_folders, holds)) return kLibrary;
  const int offset = _PyInterpreterFrame_LASTI(&frame) * static_cast<int>(sizeof(_Py_CODEUNIT));
  return intern_location(line_text(file, PyCode_Addr2Line(code, offset)));
}

LocationId look_up(Table& table, const _PyInterpreterFrame& frame) {
#if PY_VERSION_HEX >= 0x030C0000
  if (frame.owner == FRAME_OWNED_BY_CSTACK) return kLibrary;  // no frame of Python's
#endif
  Met& met = table.entry(frame.prev_instr);
  if (met.instruction != frame.prev_instr) [[unlikely]]
    met = {frame.prev_instr, classify(frame)};
  return met.what;
}

#endif

}  // namespace

void set_library_folders(std::vector<std::string> folders) {
  g_library_folders = std::move(folders);
  for (std::string& folder : g_library_folders) folder += folder.ends_with(".py") ? "" : "/";
}

// A thread's frames are read without the GIL: only the thread itself makes and ends them, and a frame keeps its code alive.
PythonPlace python_place() {
#if LTC_KNOWS_FRAMES
  PyThreadState* state = thread_state();
  if (!state) return {};
  const uint64_t generation = g_generation.load(std::memory_order_acquire);
  Table& table = t_table && t_table->generation == generation ? *t_table : fresh_table(generation);
  PythonPlace place;
  const _PyInterpreterFrame* innermost = state->cframe->current_frame;
  for (const _PyInterpreterFrame* frame = innermost; frame; frame = frame->previous) {
    const LocationId what = look_up(table, *frame);
    if (what < kLibrary) {
      place.line = what;
      return place;
    }
    if (frame == innermost) place.in_engine = what == kEngine;
  }
  return place;
#else
  return {};
#endif
}

namespace {

// Calls visit(code, frame) with each frame, the innermost first, until it returns false. In a thread that Python
// does not know, with none.
template <typename Visit>
void visit_frames(Visit visit) {
  if (!PyGILState_GetThisThreadState() || _Py_IsFinalizing()) return;
  Gil gil;
  PyFrameObject* frame = PyThreadState_GetFrame(PyThreadState_Get());
  while (frame) {
    PyCodeObject* code = PyFrame_GetCode(frame);
    PyFrameObject* back = visit(code, frame) ? PyFrame_GetBack(frame) : nullptr;
    Py_DECREF(code);
    Py_DECREF(frame);
    frame = back;
  }
  PyErr_Clear();
}

std::string name_of(const PyCodeObject* code) {
  const char* name = PyUnicode_AsUTF8(code->co_name);
  return name ? name : "?";
}

}  // namespace

LocationId python_stack() {
  std::string text;
  visit_frames([&](PyCodeObject* code, PyFrameObject* frame) {
    text += cat(text.empty() ? "" : ", from ", line_text(file_of(code), PyFrame_GetLineNumber(frame)), " in ", name_of(code));
    return true;
  });
  return intern_location(text);
}

LocationId python_callers() {
  std::string text;
  visit_frames([&](PyCodeObject* code, PyFrameObject*) {
    std::string file = file_of(code);
    const auto holds = [&](const std::string& folder) { return file.starts_with(folder); };
    const auto folder = std::ranges::find_if(g_library_folders, holds);
    if (folder == g_library_folders.end() && !file.starts_with("<frozen")) return false;
    if (folder != g_library_folders.end()) file.erase(0, folder->rfind('/', folder->size() - 2) + 1);
    text += cat(text.empty() ? "" : ", ", file, " in ", name_of(code));
    return true;
  });
  return intern_location(text);
}

}  // namespace ltc

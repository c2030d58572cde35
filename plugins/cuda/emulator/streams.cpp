// Streams and events. A stream runs when somebody waits for it and no sooner, unless the order is random.
#include "cuda/emulator/state.h"

namespace ltc::emulator {

LTC_EMULATED cuStreamCreate(CUstream* stream, unsigned) {
  return answer([&] {
    auto made = std::make_shared<Stream>();
    made->context = &current_context();
    state().add(made);
    *stream = new CUstream_st{std::move(made)};
  });
}
LTC_EMULATED cuStreamDestroy_v2(CUstream stream) {
  return answer([&] {
    state().run(*stream->stream, stream->stream->submitted);
    delete stream;
  });
}
LTC_EMULATED cuStreamSynchronize(CUstream stream) {
  return answer([&] {
    require(!stream->stream->capture, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    state().run(*stream->stream, stream->stream->submitted);
    check_context(*stream->stream->context);
  });
}
// The event's present place is waited for; it may be recorded anew.
LTC_EMULATED cuStreamWaitEvent(CUstream stream, CUevent event, unsigned flags) {
  return answer([&] {
    require(flags == 0);
    if (!event->stream) return;
    state().submit(stream->stream, [other = event->stream, place = event->place] {
      state().run(*other, place);
      check_context(*other->context);
    });
  });
}
LTC_EMULATED cuLaunchHostFunc(CUstream stream, CUhostFn function, void* data) {
  return answer([&] { state().submit(stream->stream, [function, data] { function(data); }); });
}

LTC_EMULATED cuEventCreate(CUevent* event, unsigned) {
  return answer([&] {
    current_context();
    *event = new CUevent_st;
  });
}
LTC_EMULATED cuEventDestroy_v2(CUevent event) {
  return answer([&] { delete event; });
}
LTC_EMULATED cuEventRecord(CUevent event, CUstream stream) {
  return answer([&] {
    check_context(*stream->stream->context);
    require(!stream->stream->capture, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    event->stream = stream->stream;
    event->place = stream->stream->submitted;
  });
}
// A question lets the stream do one piece of work, so that who asks again and again gets there.
LTC_EMULATED cuEventQuery(CUevent event) {
  return answer([&] {
    if (!event->stream) return;
    Stream& stream = *event->stream;
    const bool was_over = stream.done >= event->place;
    if (!was_over) state().run(stream, stream.done + 1);
    check_context(*stream.context);
    require(was_over, CUDA_ERROR_NOT_READY);
  });
}
LTC_EMULATED cuEventSynchronize(CUevent event) {
  return answer([&] {
    if (!event->stream) return;
    state().run(*event->stream, event->place);
    check_context(*event->stream->context);
  });
}

}  // namespace ltc::emulator

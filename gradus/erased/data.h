/// Data sets whose elements have a number of fields that C++ does not know.
///
///   erased::Pipeline data = erased::Pipeline::generate(specs, next).map(f, f, {}).batch(32, {});
///   for (auto reading = data.begin(); !reading->at_end(); reading->advance()) use(reading->element());
///
/// A function of a stage is given twice: `trace` is called with symbols, to learn the specs of its results and to make
/// many elements at once, `run` with the fields of one element. They may be the same.
#pragma once
#include "gradus/data/element_source.h"
#include "gradus/data/pipeline.h"

namespace gradus::erased {

/// A chain of stages. It is a value; a copy counts its own passes.
using gradus::Pipeline;
/// One pass over a data set.
using detail::Reading;
/// A function from the fields of an element to fields.
using gradus::ElementFunction;
/// Gives the next element, or none at the end. A copy goes on by itself.
using gradus::GeneratorFunction;
/// Elements from an iterator of another language: begun for each pass, and asked for several elements at once where a
/// batch of known sizes is made of them.
using detail::ElementRows;
using detail::ElementSource;
using gradus::ElementSourceFunction;
/// A function from the fields of an element to a pipeline, for interleave.
using gradus::PipelineFunction;
/// The number of elements that a window of a key holds.
using gradus::GroupSize;

}  // namespace gradus::erased
